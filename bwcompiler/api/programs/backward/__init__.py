"""Backward calls of a `Program`.  Begin with `requests.py`: kinds of backward calls, and the graph of each; `seeds.py` and
`traced_seeds.py` match seeds with outputs, `buffers.py` checks arrays that gradients are added to, `forms.py` prepares native calls.
"""
