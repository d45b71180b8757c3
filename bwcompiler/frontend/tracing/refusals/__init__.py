"""Errors for what a handle cannot do: give its number (`demands.py`; integers are obtained by tracing again) or a concrete array
(`conversions.py`), attributes of other libraries' arrays, calls of these libraries (`foreign_calls.py`), functions of arrays whose shape
depends on a loop index.  Each says what to write instead; `tracebacks.py` chooses the frames shown, `notes.py` adds
notes to errors of others.
"""
