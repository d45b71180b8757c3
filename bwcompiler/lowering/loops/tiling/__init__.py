"""Loops whose accesses are transposed or short, rearranged for cache lines and vectors.

    tiles, stage_columns                   transposed accesses: in elementwise loops, and in loops over rows
    stage_products                         matrices packed for products in loops
    join_rows                              sums over several short axes become sums over one
"""
