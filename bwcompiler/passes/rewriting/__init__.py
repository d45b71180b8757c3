"""Passes that are tables of rules for one engine, `rewriter.py`.  Begin with `simplify.py`.

    simplify (simplify_rules)     identities, constants; update_chains: what slices of updated arrays read
    cancel_shifts                 extrema that cancel have no derivative
    share_results                 eigenvalues of a matrix whose eigenvectors are computed too, ...
    legalize (legal/)             what lowering accepts
    defer_checks                  indices are checked by the loops that read with them
    add_products                  products that are added to other results
"""
