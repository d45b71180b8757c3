"""Dictionaries, stacks and heaps of which data decide what they hold: arrays with room for all that there may be.

A list, dictionary or set is Python's own until it is asked for something that needs numbers: a key that is traced and may be new, `pop`
in a loop that data end, the smallest of a heap.  Then the function is traced again, and what is made in that line is such an object from
the beginning (`sites`); its arrays belong to where it was made, so that loops and branches change them as any other array.
Begin with `store.py`, which has rows and their number.
"""
