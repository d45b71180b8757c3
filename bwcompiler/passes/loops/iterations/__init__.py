"""The iterations of a loop: how many there are, and which are in the loop or beside it.

    split_loops       splits a loop into index ranges in which choices made by the index are constant; begin here
    count_whiles      turns while loops that count into loops between bounds
    unroll_loops      unrolls short loops over large arrays
    reroll_loops      puts an iteration that stands before its loop back into the loop
    known_extents     integers computed from loop indices
"""
