"""Complex numbers in kernels, as pairs of reals: `split_complex`, by arithmetic (`complex_arithmetic.py`) and functions of them."""
