"""Passes that are tables of rules for one engine, `rewriter.py`.  Begin with `simplify.py`.

    simplify (simplify_rules)     identities, constants; update_chains: reads of slices of updated arrays
    narrow_sorts                  sorts of which few elements are read become selections
    cancel_shifts                 stops derivatives of shifts that cancel (maxima in a log-sum-exp)
    share_results                 eigenvalues are taken from a computation of eigenvectors of the same matrix, ...
    legalize (legal/)             rewrites everything into ops that lowering accepts
    defer_checks                  index checks are done by the loops that read with the indices
    add_products                  products are added directly to other results
"""
