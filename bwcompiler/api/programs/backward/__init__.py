"""Backward calls of a `Program`.  Begin with `requests.py`: which gradients are asked for, and the graph of each kind; `seeds.py` and
`traced_seeds.py` match seeds with outputs, `buffers.py` is about arrays that gradients are added to, `forms.py` about native calls.
"""
