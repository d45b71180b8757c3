"""The iterations of a loop: how many there are, and which are in the loop or beside it.

    split_loops       splits a loop into index ranges in which choices made by the index are constant; begin here
    count_whiles      turns while loops that count into loops between bounds
    unroll_loops      unrolls short loops over large arrays
    reroll_loops      puts an iteration that stands before its loop back into the loop
    unroll_and_jam    runs a few rows of a nest together: of a recurrence in two directions, or rows that read the same
    nests             loops over rows and columns: what is done before, in and after the columns, and what that touches
    row_schedules     in which order the columns of rows run together, and whether that keeps the order of reads and writes
    known_extents     integers computed from loop indices
"""
