"""Graphs and kernels as text.  Begin with `graph_printer.py`; what `graph_` and `loop_printer` write, `graph_` and `loop_parser` read."""
