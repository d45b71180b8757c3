"""What a handle is asked for and cannot give: numbers (`demands.py`; integers are had by tracing again), arrays (`conversions.py`),
attributes of other libraries' arrays, calls of these libraries (`foreign_calls.py`), functions of arrays whose extents move with a loop.
Each error says what to write instead; `tracebacks.py` says which frames of it the user sees, `notes.py` what stands below errors of others.
"""
