"""Loops and branches before they are lowered.

    vectorize_loops     loops over elements are operations on arrays (dependence: whether iterations touch the same ones); begin here
    array_parts         which parts of arrays values read and write, and loops with all their iterations
    hoist_invariants    what is the same in all iterations is computed before
    narrow_sums         sums over slices between data bounds go over a few elements, where they are few
    iterations/         loops in parts, so that choices that an index decides are none; written out; counted
    select_branches     choices between a few numbers compute both sides; branch_states: arrays that a choice updates
    carried/            what loops carry: elements as numbers, matrices transposed, parts where they lie
    prune_regions       what nobody reads
    region_bodies       what these share about bodies, also with `passes/adjoints`; replaced_regions: the walk over loops and branches
"""
