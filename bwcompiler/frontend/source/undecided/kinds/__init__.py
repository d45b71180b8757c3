"""Variables whose kind depends on data.  Imports go downwards only:

    tuples                  tuples with such things in them
    orders                  comparisons of such tuples, and of lists
    named                   attributes whose name is a choice
    unbound                 something or nothing
    changed                 changes of one of several objects
    choices                 one of several known things, or a value
    identities              objects that are told apart
    two_shapes              a number or an array

Begin with `choices`.
"""
