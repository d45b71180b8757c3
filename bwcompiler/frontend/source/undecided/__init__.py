"""Python objects that depend on data.  Imports go downwards only:

    outcomes    such objects as results of the traced function
    lookups     items of dictionaries, sets and lists at traced places
    lists       lists with gaps, whose elements are there or not
    kinds       what a variable holds: one of several things, a number or an array, something or nothing

Begin with `kinds.choices` and `lists.gaps`.
"""
