"""The public functions, composed of the compiler's stages.  Start reading at `functions.py` (`jit`) and `program.py` (`compile`)."""
