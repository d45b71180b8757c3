"""Capture of Python's control flow: the user's functions are rewritten from their source code so that loops and branches are recorded.

`syntax.functions.converted` returns the rewritten form of a function.  The rewritten code calls `runtime`, which uses `calls`,
`decisions`, and `bodies` for loops and branches.  Imports go downwards only:
    runtime          the functions that rewritten code calls
    decisions        branches, tests, conditions of comprehensions
    calls            function calls and attributes: which function is called instead; `library` has replacements of library functions
    items            items of containers and arrays, iteration
    changes          assignments
    bodies           recording of loops and branches; begin with `capture`
    carried          arrays that loops pass from one iteration to the next
    array_backed     lists and dictionaries represented by arrays while loops are traced
    containers       objects and containers, split into variables
    undecided        lists whose length, and variables whose kind, depends on data
    effects          objects and containers that bodies change, exceptions
    concrete         arrays whose contents are known while tracing
    variables        the variables of a body and their values
    syntax           source code of functions: lookup, analysis, rewriting
"""
