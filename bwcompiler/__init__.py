"""bwcompiler: NumPy functions compiled to native forward and backward code."""

__version__ = "0.1.0"
