"""Native execution: LLVM text and a call signature in, a Python callable out.  Start reading at `executable.py`.

`jit.py` and `object_cache.py` make code of text; `entry*.py` are the native call (`python_entry.py` says in Python what it does);
`memory_pool.py` and `thread_*.py` are what programs share.  Modules that say "in LLVM text" write functions of the runtime itself.
"""
