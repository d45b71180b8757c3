"""Native execution: LLVM text and a call signature in, a Python callable out.  Start reading at `executable.py`."""
