"""Fusion: values grouped into loop trees, one sweep over memory each."""
