"""Matrix products of floats and complex numbers as native code of their own, compiled once per target, in modules (`parts.py`).

Start reading in `call.py` (what programs call), then `blocked.py`, `tiles.py` and `packing.py`; `vectors.py` has products with vectors.
What decides the bits of a result: sums of BLOCK terms, each added to the last one with one rounding where the target has fused
multiply-add, are added in order (`routine.py`); of a product with a vector along rows the order is that of `vectors.py`.
"""
