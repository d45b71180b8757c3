"""Syntax trees of functions: found, analysed, and rewritten so that control flow can be captured.  Begin with `functions.py`.

    lookup, typed, private                   the tree of a function; private names of its class are written out
    rewriting                                its loops, branches and calls are made to go through `runtime`, after simpler statements
                                             have taken the place of
    jumps, named, matches, tries             `break`, `continue` and `return`; assignments in tests; `match`; `try`
    annotated, deleted, comparisons, stored  annotations of variables; `del`; chains of comparisons; generators that a variable holds
    generators, recursion, searches          functions that yield; that call themselves at their end; `any`, `all` and `next`
    liveness, bound, filled                  what is read later, what is certainly bound, which arrays are filled
    expressions, nodes                       possible effects; walks over trees
"""
