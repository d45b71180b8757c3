"""Recording of loop and branch bodies: `capture` is common to all loops, before and while they are traced, `after_loops` afterwards;
`counted_loops`, `data_loops` and `known_loops` are the kinds of loops (with `iteration` over sequences, and `integers` that may overflow);
`branches`, with `merging` of the variables after them; `tries`: statements with handlers.
"""
