"""The arguments of a call, and the values that its program reads from outside.  Begin with `forms.py`: the trees that the native entry
walks to find leaves.  `specialisation_keys.py` and `fitting.py` match calls with programs; `assignments.py` and `shared_arguments.py`
handle arguments that are written to, `changing_numbers.py` and `outside_operands.py` values read from outside; `assumptions.py` says
for which calls a trace holds; `shapes.py` has stand-ins for arrays without data.
"""
