"""The index in x[...].  Begin with `index_parsing.py`, which takes an index apart.  `index_handle.py`: loop indices, and slices that
depend on them; `masked_selection.py` (x[mask]) and `data_slices.py` (x[start:stop]): results whose number of elements is data;
`grids.py` (x[np.ix_(i, j)]): likewise along several axes; `data_windows.py` (x[k:k + 3]): slices of a known number of elements at
positions that are data.
"""
