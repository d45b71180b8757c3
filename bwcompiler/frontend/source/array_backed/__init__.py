"""Lists and dictionaries that are represented by arrays while loops are traced.  Begin with `growth`: lists that loops append to
(`appended`, `schedules`, `boxes`), also if they read them in the same loop (`histories`).
    invariant_lists, lookups     lists that do not change, read at positions that depend on a loop index
    indexed_lists                lists that are assigned to at such positions (`element_forms`: what elements arrays can hold)
    nested_lists                 lists of lists of numbers that are: tables of dynamic programming
    dictionaries, key_order      dictionaries with keys made of loop indices
"""
