"""Capture of Python's control flow: the user's functions are rewritten from their source code so that loops and branches are recorded.

`syntax.functions.converted` returns the rewritten form of a function.  The rewritten code calls `runtime`.  Imports go downwards only:
    runtime                             the functions that rewritten code calls
    loops, guarded_loops, unrolling     how a loop or comprehension is traced: recorded, or one iteration after the other
    generators, recursion               loops over the user's generators; functions that call themselves
    collected                           comprehensions that make dictionaries and sets
    decisions                           branches, tests, conditions of comprehensions
    asked                               integers that a function surely asks for
    calls                               calls and attributes: which function is called instead
    bodies                              recording of loops and branches; begin with `capture`
    items                               items of containers and arrays, iteration
    classes, drawn                      objects of the user's classes that are made; generators of random numbers
    bounded                             dictionaries, stacks and heaps with room for what data put in them
    carried                             arrays that loops pass from one iteration to the next
    changes                             assignments
    array_backed                        lists and dictionaries represented by arrays while loops are traced
    containers                          objects and containers, split into variables
    undecided                           lists whose length, and variables whose kind, depends on data
    library                             replacements of library functions
    effects                             objects and containers that bodies change, exceptions
    concrete                            arrays whose contents are known while tracing
    variables                           the variables of a body and their values
    syntax                              source code of functions: lookup, analysis, rewriting
"""
