"""The syntax tree of a function as the user wrote it, made plain.  Begin with `lookup.py`, whose `definition` finds it.

typed                        source of functions whose file has no name
annotated, private           annotations of variables are taken out; private names of a class are written out
assigned_globals             variables of the module that it assigns to are items of a dictionary
deleted, stored              `del` of what nothing reads afterwards; generators that a variable holds until a loop goes over them
"""
