"""Reverse mode of loops, branches and checkpointed functions.  Begin with `expand_regions.py`, which makes each of them one that also
gives what its adjoint needs.

    loop_adjoint, while_adjoint, counted_adjoint     the adjoints of loops, whose number of iterations is known or data
    cond_adjoint, checkpoint_adjoint                 of branches, of checkpointed functions
    segment_loops                                    before that: loops that would keep too much are cut into checkpointed segments
    cut_body                                         the body of each, cut into a forward and an adjoint part
    undo_log, final_parts, narrow_residuals          what the forward part need not keep: arrays that are restored on the way back, parts
                                                     that are in the final arrays, all but the parts that are read
    keep_cotangents, order_additions                 rewrites of the adjoint part
    late_products                                    products that a reverse loop adds up, as one after it
    unlink_regions, reuse_restored                   after the reverse sweep
"""
