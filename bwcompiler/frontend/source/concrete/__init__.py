"""Concrete arrays (not traced) in captured code: those that the function makes (`makers`), their methods (`methods`), those from outside
whose contents it reads (`contents`), and the arguments that NumPy's functions write to (`writes`).
"""
