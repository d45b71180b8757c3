"""Fusion: values grouped into loop trees, one sweep over memory each.  Begin with `fuse.py`; `attempt.py` says whether a value can join a
group, and `rules.py`, in words, why not.  The inputs of a decision have a module each:

steps, step_order                       the steps so far, and their order
reads, versions, in_step                what is read; arrays that are written to; updates beside reads of the same elements
recomputation, computed_again           values that are computed where they are read
waiting_numbers                         numbers, which open no groups
axis_order                              the order of a group's loops, where it is free
"""
