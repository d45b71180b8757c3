"""Arrays that loops pass from one iteration to the next: which name refers to which array afterwards (`same_arrays`, `copies`, `exchanges`,
`first_writes`, `kept`), and arrays whose shape changes (`moving`).
"""
