"""Handles (traced values) record the operations on them; `trace` calls a function with handles and makes a graph of the record.

    trace                          one call: the function is run, with handles as arguments
    boundary/                      the arguments of the call, flattened, and what it gives
    policy                         how control flow is captured in one call
    outside/                       values that the function reads from outside of its arguments
    handles, calls, tracer         the objects that stand for arrays, and how their methods run
    operands, promotion, rows      conversion of operands to values of one dtype and shape
    registry                       the tables of supported functions, which `frontend/numpy` fills
    indexing/                      x[...] with integers, arrays, loop indices, masks, and slices whose bounds are data
    storages/                      the contents of arrays, views, and memory order
    control_flow/                  loops and branches as ops with graphs of their own
    callbacks, custom_rules        Python functions called by programs, functions with custom derivatives
    refusals/                      errors about what a handle cannot do, with what to write instead
    provenance/                    the user's source line, and the user's names of values

Begin with `tracer.py`, then `trace.py`.
"""
