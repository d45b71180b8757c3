"""Graphs for other tools: NumPy modules (`numpy_source.py`; begin there), JSON and DOT (`graph_formats.py`)."""
