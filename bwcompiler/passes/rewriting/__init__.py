"""Passes that are tables of rules for one engine, `rewriter.py`: `simplify.py` (rules: `simplify_rules.py`; what slices of
updated arrays read: `update_chains.py`), `share_results.py` (eigenvalues of a matrix whose eigenvectors are computed too, ...),
and `legalize.py`, which rewrites into what lowering accepts (linear algebra: `factorization_rules.py`; half precision:
`half_rules.py`; sliding windows: `window_rules.py`; products that are read transposed:
`turned_products.py`; transforms of real numbers: `half_spectra.py`).
"""
