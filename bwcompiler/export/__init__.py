"""Graphs for other tools: NumPy modules, JSON, DOT."""
