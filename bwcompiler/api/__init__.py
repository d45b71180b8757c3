"""The public functions, composed of the compiler's stages.  Start reading at `compiler.py`."""
