"""The interface between native programs and the runtime, besides call signatures (`call_signature.py`).

A program is LLVM text with `define i32 @bw_program(ptr %buffers, ptr %arena)`.  `%buffers` points to an array of
pointers: one per argument leaf, then one per captured array, then one per result (`CallSignature.buffer_count`).
`%arena` is 64-byte aligned: a 64-byte error record {i64 node id, i64 index, i64 values[6]}, zeroed before the call,
followed by `arena_bytes` of scratch.  0 means success; a positive code is passed with the record to `raise_error`.
"""

from __future__ import annotations

ERROR_RECORD_BYTES = 64  # at the start of every arena; also the alignment of arenas

# ----- status codes of programs
INDEX_ERROR = 1                # an index out of range; record: {number of the check, index, axis extent}
CALLBACK_ERROR = 2
CALLBACK_DONE = 1              # success of a callback: not 0, which ctypes returns for one that was interrupted in its first line
LINALG_ERROR = 3               # a factorisation failed; record: {number of the call}
INTERRUPTED = 4                # a signal handler raised: the exception is set
NEGATIVE_ERROR = 5             # an operand has an element below zero; record: {number of the call}
MEMORY_ERROR = 6               # a library function found no memory; record: {number of the call}
ARENA_ERROR = 7                # from the entry: no memory for the arena, the program did not run

# ----- functions of the runtime that programs call
POLL = "bw_poll"               # polls for signals: 0, or the status to return (`runtime/interrupts.py`)
DECLARE_POLL = f"declare i32 @{POLL}()"
PARALLEL = "bw_parallel"       # i32 (ptr fn, ptr context, i64 count, i64 grain): divides iterations (`runtime/pool/thread_pool.py`)
DECLARE_PARALLEL = f"declare i32 @{PARALLEL}(ptr, ptr, i64, i64)"
BLAS_ENTER, BLAS_LEAVE = "bw_blas_enter", "bw_blas_leave"    # void (): between them the BLAS has one thread (`runtime/blas_calls.py`)
LEAST_BLAS_THREADS = 2**28     # n³ of a factorisation from which BLAS uses its own threads
TAKE, GIVE = "bw_memory_take", "bw_memory_give"    # memory for temporaries outside of the arena (`runtime/memory_pool.py`)
