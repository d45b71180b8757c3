"""Reverse mode of loops, branches and checkpointed functions.  Begin with `expand_regions.py`, which makes each of them one that also
gives what its adjoint needs.

    loop_adjoint, while_adjoint, counted_adjoint     the adjoints of loops, whose number of iterations is known or data
    cond_adjoint, checkpoint_adjoint                 of branches, of checkpointed functions
    bodies/                                          the body of each, cut into a forward and an adjoint part
    segment_loops                                    before that: loops that would keep too much are cut into checkpointed segments
    late_products                                    products that a reverse loop adds up, as one after it
    unlink_regions, reuse_restored                   after the reverse sweep
"""
