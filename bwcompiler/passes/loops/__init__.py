"""Loops and branches before they are lowered.

    vectorize_loops     loops over elements are operations on arrays; begin here
    unroll_loops        short loops over large arrays are written out
    promote_elements, carry_elements     elements that an iteration reads or leaves to the next one are numbers
    prune_regions       what nobody reads
    region_bodies       what these share about bodies, also with `passes/adjoints`
"""
