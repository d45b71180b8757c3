"""Source code of functions: `lookup` finds the syntax tree of a function, `rewriting` rewrites its loops, branches and calls, after `jumps`
has removed break, continue and return, `named` the assignments in tests, and `annotated` the annotations of variables; `liveness`
analyses its variables, and `expressions` the possible effects of expressions.
"""
