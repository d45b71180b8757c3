"""The iterations of a loop: how many there are, and which are in the loop or beside it.

    split_loops       splits a loop into index ranges in which choices made by the index are constant; begin here
    count_whiles      turns while loops that count into loops between bounds
    unroll_loops      unrolls short loops over large arrays
    reroll_loops      puts an iteration that stands before its loop back into the loop
    skew_loops        runs a few rows of a recurrence in two directions together, each some columns behind the one before
    nests             loops over rows and columns: what they touch, and how far apart rows have to be
    known_extents     integers computed from loop indices
"""
