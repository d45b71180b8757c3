"""Capture of Python's control flow: the user's functions, rewritten from their source so that loops and branches are recorded.

`functions.converted` gives the rewritten form of a function; `rewriting` is what is done to its syntax tree, with what `liveness`
knows of its variables; `runtime` is what the rewritten code calls, `capture` how it records bodies, `counted_loops` and `data_loops` loops,
`branches` branches, `checks` exceptions.  `places` and `growth` are what bodies change besides variables.
"""
