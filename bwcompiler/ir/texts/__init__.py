"""Graphs and kernels as text: printers, and parsers that read the printed text.  Begin with `graph_printer.py`."""
