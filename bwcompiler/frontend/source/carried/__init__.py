"""Arrays that loops take from one iteration to the next: which name has which of them afterwards (`same_arrays`, `copies`, `exchanges`,
`first_writes`), and those whose shapes move (`moving`).
"""
