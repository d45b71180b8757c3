"""Memory of values.  Of the states of loops, parts that are set to a number are set late (`clear_late.py`), and new states written beside
the old ones (`write_beside.py`); parts that are cleared and then added to are set (`skip_clears.py`).  Before fusion: which updates are
done in place (`find_updates.py`), moving them after readers of the old version (`delay_updates.py`), reading what was written from its
array (`read_written.py`), and saving slices that are read after they are overwritten (`save_slices.py`).  After fusion: `plan_memory.py`;
begin there.
"""
