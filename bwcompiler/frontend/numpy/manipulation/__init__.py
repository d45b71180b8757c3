"""Functions that create, move and select elements.  Begin with `layout.py` (views and copies as in NumPy) and
`indexing.py` (reading and writing items).

creation, sequences         arrays from numbers, and from sequences of traced arrays
layout, strides             elements of one array at other places; views by steps in memory
joining, padding            several arrays as one, parts of one, repetitions; borders
indexing, selection         items; elements chosen by positions and conditions
insertion                   elements inserted and deleted
pieces                      functions that are applied where conditions hold
flat_positions              positions in flat arrays
"""
