"""The rewrites of `legalize.py`, one file per kind of ops.  Begin with `window_rules.py`.

    factorization_rules     linear algebra: solves, inverses and determinants of the same factors
    narrow_products, sliced_products, turned_products     matrix products, by how they are read
    window_rules, half_spectra, half_rules, diagonal_rules     sliding windows, transforms of real numbers, half precision, diagonals
"""
