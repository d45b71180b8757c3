"""The semantics of graphs and kernels.  Begin with `graph_interpreter.py`, the definition of every program.

    graph_interpreter, loop_interpreter    what programs compute
    partial_interpreter                    what is known of them where some inputs are not
    reduction_tree                         the order of additions in sums
    graph_verifier, loop_verifier          the invariants of valid graphs and kernels
    content_hash                           equal for graphs that compute the same
"""
