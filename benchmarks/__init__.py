"""Timed comparisons with peers: `python -m benchmarks.loops` (README.md)."""
