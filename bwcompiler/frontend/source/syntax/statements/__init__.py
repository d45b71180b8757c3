"""Statements rewritten as simpler ones, which `rewriting.py` can capture.

jumps, deferred              `break`, `continue` and `return` in branches and loops; what a `return` in a loop gives
named, matches, tries        assignments in tests; `match`; `try`
"""
