"""What loops take from one iteration to the next besides numbers: lists that grow (`growth`) or are arrays (`lined`), arrays whose
shapes move (`moving`), and which name has which array afterwards (`same_arrays`, `copies`).
"""
