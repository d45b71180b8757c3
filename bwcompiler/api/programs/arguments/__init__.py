"""What a call is given, and what its program reads from outside.  Begin with `forms.py`: from Python arguments to leaves that the native
entry finds.  `specialisation_keys.py` and `fitting.py` say which program is for which arguments; `assignments.py` and `shared_arguments.py`
are about arguments that are written to, `changing_numbers.py` and `outside_operands.py` about what is read from elsewhere; `shapes.py` is
for arrays that are not there yet.
"""
