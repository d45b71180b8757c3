"""Which memory values live in.  Before fusion: which updates touch only their slice (`find_updates.py`), where they stand
(`delay_updates.py`), and what is read later than it is written (`save_slices.py`).  After fusion: `plan_memory.py`; begin there.
"""
