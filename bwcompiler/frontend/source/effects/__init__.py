"""Side effects of bodies.  Begin with `places.py`: changes of objects and containers, each as a variable of the body.

places                  attributes and items that a body changes
methods, enclosing      assignments that call the user's methods; functions that bind variables of those around them
doubles                 objects that stand in the place of others, with the same contents
checks, number_errors   exceptions and messages that depend on data; operations on numbers for which Python raises
complaints              what NumPy warns of, and may be told to raise
packages                which functions only compute
"""
