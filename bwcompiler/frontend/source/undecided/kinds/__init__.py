"""Variables whose kind depends on data.  A module imports only of those above it:

    identities              objects that are told apart
    choices                 one of several known things, or a value
    changed                 changes of one of several objects
    two_shapes              a number or an array
    unbound                 something or nothing
    named                   attributes whose name is a choice
    orders                  comparisons of tuples and lists of such things
    tuples, fitting         what the sides of a branch give, made alike

Begin with `choices`.
"""
