"""Fusion: values grouped into loop trees, one sweep over memory each.  Begin with `fuse.py`; `attempt.py` says whether a value can join a
group, and `rules.py`, in words, why not.  What a decision looks at has a module each: the steps so far and their order (`steps.py`,
`step_order.py`), arrays that are written to (`versions.py`), what is computed again (`recomputation.py`), numbers (`waiting_numbers.py`).
"""
