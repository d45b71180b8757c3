"""Derivatives of graphs.  Begin with `autodiff.py` (reverse mode) and `push_forward.py` (forward mode).

activity                   which values derivatives can pass through
cotangents, masks          guards: elements that `where` does not choose have the derivative zero, whatever their values
push_regions               forward mode of loops and branches (reverse mode: `passes/adjoints`)
roots                      square roots at 0, in what is smooth there
expand_, inline_ and unlink_custom_rules, transposed_rule     functions with the user's own derivative (expansion: the walk)
partition, minimum_cut     which primals the adjoint graph gets from the forward graph, and which it recomputes
"""
