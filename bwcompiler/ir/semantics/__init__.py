"""What graphs and kernels mean.  Begin with `graph_interpreter.py`, the definition of every program.

    graph_interpreter, loop_interpreter    what programs compute
    reduction_tree                         in which order sums are added
    graph_verifier, loop_verifier          which graphs and kernels are valid
    content_hash                           equal for graphs that compute the same
"""
