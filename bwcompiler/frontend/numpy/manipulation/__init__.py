"""Functions that create, move and select elements.  Begin with `layout.py` (views and copies as in NumPy) and
`indexing.py` (reading and writing items).
"""
