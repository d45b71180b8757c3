"""Handles that record what is done to them, and `trace`, which gives a function handles and makes a graph of what they recorded.

    trace, arguments               one call: its arguments taken apart, the function run
    outside/                       what the function read from elsewhere
    handles, calls, tracer         what stands for an array, and how its methods run
    operands, promotion            from what the user passes to values of one dtype and shape
    registry                       the tables of what is supported, which `frontend/numpy` fills
    indexing/                      what stands in x[...]: integers, arrays, indices of loops, masks, slices between bounds that are data
    storages/                      what arrays hold, how their elements lie in memory
    control_flow/                  loops and branches as ops with graphs of their own
    callbacks, custom_rules        Python functions inside of programs, and functions with the user's own derivative
    refusals/                      what a handle cannot do, and what to write instead
    source, user_names             the user's line, and what the user calls a value

Begin with `tracer.py`, then `trace.py`.
"""
