"""What a traced function takes and gives.

arguments                    the arguments of one call, flattened: traced leaves, compile-time values, and the trees that contain them
known_arrays                 arguments whose numbers decide what is traced, and are compiled in
results, trace_result        the values of results, or why there are none; all that tracing gives
"""
