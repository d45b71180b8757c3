"""The thread pool of programs.  Begin with `thread_pool.py`; `thread_state.py` has the shared state, `thread_workers.py` the start and
the waiting of threads.
"""
