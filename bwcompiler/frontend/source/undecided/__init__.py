"""Python objects that depend on data.  Imports go downwards only:

    outcomes    such objects as results of the traced function
    fitting     what the sides of a branch give, and what a loop begins with, made alike
    lookups     items of dictionaries, sets and lists at traced places
    lists       lists with gaps, whose elements are there or not
    kinds       what a variable holds: one of several things, a number or an array, something or nothing

Begin with `kinds.choices` and `lists.gaps`.
"""
