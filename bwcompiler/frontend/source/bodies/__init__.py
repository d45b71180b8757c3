"""Bodies of loops and branches, recorded: `capture` for all kinds, `counted_loops`, `data_loops` and `known_loops` (with what loops go
over, `iteration`, and `integers` that may overflow), `branches` (with what variables hold after them, `merging`).
"""
