"""Functions that make, move and choose elements.  Begin with `layout.py` (views where NumPy gives views, copies where it copies) and
`indexing.py` (reading and writing items).
"""
