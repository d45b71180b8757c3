"""Fusion: values grouped into loop trees, one sweep over memory each.  Begin with `fuse.py`; `attempt.py` says whether a value can join a
group, and `rules.py`, in words, why not.  The inputs of a decision have a module each: the steps so far and their order (`steps.py`,
`step_order.py`), arrays that are written to (`versions.py`), values computed again (`recomputation.py`), numbers (`waiting_numbers.py`).
"""
