"""Concrete arrays (not traced) in captured code: those that the function makes (`makers`), those from outside whose contents it reads
(`contents`), and the arguments that NumPy's functions write to (`writes`).
"""
