"""Syntax trees of functions: found, analysed, and rewritten so that control flow can be captured.  Begin with `functions.py`.

definitions                              the tree of a function, found and made plain
rewriting                                its loops, branches and calls are made to go through `runtime`, after simpler forms have taken the
                                         place of
statements                                 `break`, `continue` and `return`, assignments in tests, `match`, `try`
comparisons, searches                      chains of comparisons; `any`, `all` and `next`
comprehensions                             list comprehensions
generators, recursion                    functions that yield; that call themselves at their end, or to add up (`recursive_sums`)
analysis                                 what is read later, what is certainly bound, which arrays are filled, possible effects
names, nodes                             names in rewritten code; walks over trees
"""
