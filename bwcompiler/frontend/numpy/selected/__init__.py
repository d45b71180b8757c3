"""NumPy's functions on selections by a traced mask (`tracing/indexing/masked_selection.py`), on positions of a mask, and on grids.

Imports go downwards only:

    assumed                                 sizes that are taken for what they are
    grids                                   arrays of which several axes have masks (`tracing/indexing/grids.py`)
    counted                                 arrays with as many elements as data say
    sets                                    distinct numbers
    indexing                                items, positions, and what is assigned or added at them
    reducing, ordering, products, fitting   what each kind of function does with elements that are not selected
    elementwise, shapes                     likewise, of operators and ufuncs; of np.reshape and its like
    lines                                   operands of several masks
    packing                                 selections by a common mask, and with the selected elements in front

Begin with `packing`, which all others use, then `elementwise`.
"""
