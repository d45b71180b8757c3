"""The contents of arrays and their memory order.  Begin with `region.py` (storages, and the regions that values are recorded in), then
`views.py` and `strided_views.py` (chains from a storage to a handle) and `shapes.py` (strides); `memory_order.py` and `new_strides.py`
determine what NumPy's order would be.
"""
