"""What stands in x[...].  Begin with `index_parsing.py`, which takes an index apart.  `index_handle.py`: indices of loops, and slices that
move with these; what has as many elements as data says: `masked_selection.py` (x[mask]) and `data_slices.py` (x[start:stop]); slices of a
known number of elements at places that are data: `data_windows.py` (x[k:k + 3]).
"""
