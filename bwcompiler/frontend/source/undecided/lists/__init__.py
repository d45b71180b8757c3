"""Lists whose elements exist or not, depending on data.  Imports go downwards only:

    taking      which functions accept such lists
    compared    whether two are equal
    ragged      one of several lists
    keyed       elements in the order of their keys
    moved       elements that are counted and put elsewhere
    searches    `any`, `all` and `next` over them
    gaps        the list, and what ignores the elements that do not exist

Begin with `gaps`.
"""
