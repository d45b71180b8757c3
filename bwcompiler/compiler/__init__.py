"""From a graph to LLVM text: the one pipeline (`pipeline.py`; begin there), its options, and the native libraries it may call."""
