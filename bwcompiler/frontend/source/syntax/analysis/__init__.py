"""What a function's source says of its variables and statements; nothing is rewritten here.

liveness, bound              which variables are read later, which are certainly bound
filled                       which arrays are filled with values computed from some of the variables
private                      which lists only one variable can hold
expressions                  the possible effects of statements and expressions
"""
