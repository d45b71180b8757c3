"""Matrix products of floats and complex numbers as native code of their own, compiled once per target, in modules (`parts.py`).

Start reading in `call.py` (what programs call), then `blocked.py`, `tiles.py` and `packing.py`; `vectors.py` has products with vectors.
The bits of a result are determined as follows: terms are added in blocks of BLOCK terms, each term with one rounding if the target has
fused multiply-add, and the block sums are added in order (`routine.py`).  Products with a vector along rows have the order of `vectors.py`.
"""
