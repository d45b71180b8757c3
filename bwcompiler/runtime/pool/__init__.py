"""The threads that share the loops of programs.  Begin with `thread_pool.py`; what they share is in `thread_state.py`, how they wait and
are started in `thread_workers.py`.
"""
