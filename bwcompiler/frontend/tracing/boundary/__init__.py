"""What a traced function takes and gives.

arguments                    the arguments of one call, flattened: traced leaves, compile-time values, and the trees that contain them
asked_numbers, known_arrays  arguments whose numbers decide what is traced, and are compiled in: numbers, and arrays of them
results, trace_result        the values of results, or why there are none; all that tracing gives
"""
