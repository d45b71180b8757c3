"""Which iterations a loop has: how many, which of them stand in the loop, and which beside it.

    split_loops       choices that an index decides are none in a range of it; begin here
    count_whiles      while loops that count are loops between bounds
    unroll_loops      short loops over large arrays are written out
    reroll_loops      iterations that stand before their loop are iterations of it again
    known_extents     integers that are made of loop indices
"""
