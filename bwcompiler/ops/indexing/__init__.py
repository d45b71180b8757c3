"""Data-dependent indexing.  `indices.py`: indices in range, and the checks of it; `elements.py`: gather and scatter, which take and write
elements at them; `distinct_indices.py`: whether no two are equal.
"""
