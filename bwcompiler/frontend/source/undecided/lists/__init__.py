"""Lists whose elements exist or not, depending on data.  A module imports only of those above it:

    gaps        the list, and what ignores the elements that do not exist
    searches    `any`, `all` and `next` over them
    moved       elements that are counted and put elsewhere
    keyed       elements in the order of their keys
    ragged      one of several lists
    taking      which functions accept such lists

Begin with `gaps`.
"""
