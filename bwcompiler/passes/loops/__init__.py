"""Passes over loops and branches, before these are lowered.

vectorize_loops     turns loops over elements into operations on arrays (dependence: whether iterations are independent); begin here
inequalities        whether affine inequalities of indices have a solution
array_parts         which parts of arrays values read and write, and inner loops with all their iterations
hoist_invariants    computes values that are the same in all iterations before the loop
narrow_sums         sums over slices between data bounds go over only a few elements, if they are short
iterations/         splits loops so that choices made by an index disappear; unrolls them; counts their iterations
select_branches     choices between a few numbers compute both sides; branch_states: arrays that a choice updates
carried/            what loops carry: elements as numbers, transposed matrices, parts of arrays used without copies
prune_regions       removes what nothing reads
region_bodies       helpers for bodies, also for `passes/adjoints`; replaced_regions: the walk over loops and branches
"""
