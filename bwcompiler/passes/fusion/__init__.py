"""Fusion: values grouped into loop trees, one sweep over memory each.  Begin with `fuse.py`; `attempt.py` says whether a value can join a
group, and `rules.py`, in words, why not.
"""
