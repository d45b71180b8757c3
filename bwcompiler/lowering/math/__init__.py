"""The elementary and special functions as LLVM text, accurate to a few ulp, written over vector types.  Begin with `functions.py`, the
table of them; they are written with `emitter.py`, and the numbers are in `coefficients.py`.
"""
