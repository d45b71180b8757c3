"""Graphs mapped over a new axis.  Begin with `batch.py`: the new axis is the first; `batch_regions.py` maps loops and branches, those over
small arrays with the new axis last (`batch_last.py`).
"""
