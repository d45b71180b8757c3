"""Capture of Python's control flow: the user's functions, rewritten from their source so that loops and branches are recorded.

`syntax.functions.converted` gives the rewritten form of a function, and `runtime` is what the rewritten code calls: `calls` and
`decisions`, and `bodies` for loops and branches.  Imports go downwards only:
    runtime
    decisions        branches, tests, and what comprehensions keep
    calls            what is called instead, attributes; `library` for functions of others
    items            items of containers and arrays, and what loops go over
    changes          assignments
    bodies           loops and branches, recorded; begin with `capture`
    carried          arrays that loops take along
    array_backed     lists and dictionaries that are arrays while loops are traced
    containers       objects and containers, taken apart
    undecided        lists with gaps, variables of several kinds
    effects          objects and containers that bodies change, exceptions
    concrete         arrays that are known while tracing
    variables        of a body, and what they hold
    syntax           the text of functions
"""
