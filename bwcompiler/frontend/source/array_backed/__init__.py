"""Lists and dictionaries in whose place there are arrays while loops are traced.  Begin with `growth`: lists that loops append to
(`appended`, `schedules`, `boxes`), and read again meanwhile (`histories`).
    invariant_lists, lookups     lists that do not change, read at places that move with a loop
    indexed_lists                lists of numbers that are assigned to at such places
    dictionaries, key_order      the same of dictionaries, by keys made of indices
"""
