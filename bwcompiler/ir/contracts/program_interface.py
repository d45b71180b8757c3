"""The interface between native programs and the runtime, besides call signatures (`call_signature.py`).

A program is LLVM text with `define i32 @bw_program(ptr %buffers, ptr %arena)`.  `%buffers` points to an array of
pointers: one per argument leaf, then one per captured array, then one per result (`CallSignature.buffer_count`).
`%arena` is 64-byte aligned: a 64-byte error record, zeroed before the call, followed by `arena_bytes` of scratch.  0 means
success; another status is passed to `raise_error`, with the record, whose i64 words depend on the status.
"""

from __future__ import annotations

ERROR_RECORD_BYTES = 64  # at the start of every arena; also the alignment of arenas

# ----- status codes of programs: where they come from, and the record.  `raise_status` (`compiler/native.py`) has the exceptions
INDEX_ERROR = 1                # an index out of range (`libraries/index_checks.py`); {number of the check, index, axis extent}
CALLBACK_ERROR = 2             # a Python function raised (`make_callback` in `compiler/native.py`, which keeps the exception)
LINALG_ERROR = 3               # a factorisation failed (`libraries/factorization_calls.py`, `inner_loops.py`); {number of the call}
INTERRUPTED = 4                # a signal handler raised (`runtime/interrupts.py`): the exception is set
NEGATIVE_ERROR = 5             # an operand has an element below zero (`libraries/inner_loops.py`); {number of the call}
MEMORY_ERROR = 6               # a library function found no memory (`libraries/sort_calls.py`); {number of the call}
ARENA_ERROR = 7                # no memory for the arena (`runtime/entry/native_entry.py`): the program did not run

CALLBACK_DONE = 1              # what a callback returns: not 0, which ctypes returns for one that was interrupted in its first line

# ----- functions of the runtime that programs call
POLL = "bw_poll"               # polls for signals: 0, or the status to return (`runtime/interrupts.py`)
DECLARE_POLL = f"declare i32 @{POLL}()"
PARALLEL = "bw_parallel"       # i32 (ptr fn, ptr context, i64 count, i64 grain): divides iterations (`runtime/pool/thread_pool.py`)
DECLARE_PARALLEL = f"declare i32 @{PARALLEL}(ptr, ptr, i64, i64)"
BLAS_ENTER, BLAS_LEAVE = "bw_blas_enter", "bw_blas_leave"    # void (): between them the BLAS has one thread (`runtime/blas_calls.py`)
LEAST_BLAS_THREADS = 2**28     # n³ of a factorisation from which BLAS uses its own threads
TAKE, GIVE = "bw_memory_take", "bw_memory_give"    # memory for temporaries outside of the arena (`runtime/memory_pool.py`)
