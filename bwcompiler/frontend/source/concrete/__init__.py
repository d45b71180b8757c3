"""Concrete arrays in captured code: `makers`, those that the function makes; `contents`, those from outside whose numbers it reads;
`writes`, which arguments functions of NumPy's write to.
"""
