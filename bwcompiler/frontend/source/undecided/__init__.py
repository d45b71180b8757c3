"""Python objects that depend on data.

    kinds       what a variable holds: one of several things, a number or an array, something or nothing
    lists       lists with gaps, whose elements are there or not
    lookups     items of dictionaries, sets and lists at traced places
    outcomes    such objects as results of the traced function

Begin with `kinds.choices` and `lists.gaps`.  Lists are compared and chosen by what `kinds` has, never the other way round.
"""
