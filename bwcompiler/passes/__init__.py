"""Graph to graph passes, one per file."""
