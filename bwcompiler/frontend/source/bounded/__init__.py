"""Dictionaries, stacks and heaps whose contents depend on data: arrays with room for the largest number of elements.

A list, dictionary or set is at first an ordinary Python object, until an operation needs actual numbers: a traced key that may be new,
`pop` in a loop whose end is data, the smallest element of a heap.  Then the function is traced again, and the line that creates the
container creates such an object from the start (`sites`); loops and branches change its arrays like any others.
Begin with `store.py`: rows and their count.  `groups.py` has dictionaries of lists, and `views.py` what their
`keys`, `values` and `items` give.
"""
