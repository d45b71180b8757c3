"""Allocation and release in a call of the native entry, as functions in LLVM text: result arrays, arenas, references."""

from __future__ import annotations

from bwcompiler.runtime.entry.table import LARGE_BYTES

ARENA_SLOTS = 4  # arenas that an executable keeps for its next calls

# A new C-contiguous array; null with an exception set if there is no memory.
NEW_ARRAY = """
define internal ptr @bw.new_array(ptr %spec) nounwind {
  %descr = load ptr, ptr %spec
  call void @py.Py_IncRef(ptr %descr)
  %rank.at = getelementptr i8, ptr %spec, i64 12
  %rank = load i32, ptr %rank.at
  %shape = getelementptr i8, ptr %spec, i64 16
  %array = call ptr @np.PyArray_NewFromDescr(ptr @np.ndarray, ptr %descr, i32 %rank, ptr %shape, ptr null, ptr null, i32 0, ptr null)
  ret ptr %array
}
"""

# The same with memory from the pool (`memory_pool.py`), to which the array returns it when it dies.  A memory handler that the user
# has set takes precedence.
NEW_LARGE_ARRAY = """
define internal ptr @bw.new_large_array(ptr %spec) nounwind {
start:
  %before = call ptr @np.PyDataMem_SetHandler(ptr @mem.handler)
  %failed = icmp eq ptr %before, null
  br i1 %failed, label %none, label %set
set:
  %default = icmp eq ptr %before, @np.PyDataMem_DefaultHandler
  br i1 %default, label %ours, label %theirs
ours:
  %pooled = call ptr @bw.new_array(ptr %spec)
  call void @bw.reset_handler(ptr %before)
  ret ptr %pooled
theirs:
  call void @bw.reset_handler(ptr %before)
  %other = call ptr @bw.new_array(ptr %spec)
  ret ptr %other
none:
  ret ptr null
}
define internal void @bw.reset_handler(ptr %before) nounwind {
start:
  %ours = call ptr @np.PyDataMem_SetHandler(ptr %before)
  call void @py.Py_DecRef(ptr %before)
  %failed = icmp eq ptr %ours, null
  br i1 %failed, label %done, label %drop
drop:
  call void @py.Py_DecRef(ptr %ours)
  br label %done
done:
  ret void
}
"""

# Large arenas come from the pool (`memory_pool.py`).  For others the executable has a lock-free list: one is taken by exchanging a
# slot with null, and returned by storing it into an empty slot.
ARENAS = f"""
define internal ptr @bw.take_arena(ptr %slots, i64 %bytes) nounwind {{
start:
  %large = icmp uge i64 %bytes, {LARGE_BYTES}
  br i1 %large, label %pool, label %head
pool:
  %pooled = call ptr @mem.take(i64 %bytes)
  ret ptr %pooled
head:
  %k = phi i64 [ 0, %start ], [ %k.next, %next ]
  %end = icmp eq i64 %k, {ARENA_SLOTS}
  br i1 %end, label %allocate, label %look
look:
  %slot = getelementptr ptr, ptr %slots, i64 %k
  %seen = load atomic ptr, ptr %slot monotonic, align 8
  %empty = icmp eq ptr %seen, null
  br i1 %empty, label %next, label %exchange
exchange:
  %arena = atomicrmw xchg ptr %slot, ptr null acquire
  %lost = icmp eq ptr %arena, null
  br i1 %lost, label %next, label %taken
next:
  %k.next = add i64 %k, 1
  br label %head
taken:
  ret ptr %arena
allocate:
  %new = call ptr @c.aligned_alloc(i64 64, i64 %bytes)
  ret ptr %new
}}
define internal void @bw.give_arena(ptr %slots, ptr %arena, i64 %bytes) nounwind {{
start:
  %large = icmp uge i64 %bytes, {LARGE_BYTES}
  br i1 %large, label %pool, label %head
pool:
  call void @mem.give(ptr %arena)
  ret void
head:
  %k = phi i64 [ 0, %start ], [ %k.next, %body ]
  %end = icmp eq i64 %k, {ARENA_SLOTS}
  br i1 %end, label %release, label %body
body:
  %slot = getelementptr ptr, ptr %slots, i64 %k
  %k.next = add i64 %k, 1
  %pair = cmpxchg ptr %slot, ptr null, ptr %arena release monotonic
  %given = extractvalue {{ ptr, i1 }} %pair, 1
  br i1 %given, label %done, label %head
release:
  call void @c.free(ptr %arena)
  br label %done
done:
  ret void
}}
"""

# Drop `count` references, some of which may be null.
RELEASE = """
define internal void @bw.release(ptr %objects, i64 %count) nounwind {
start:
  br label %head
head:
  %k = phi i64 [ 0, %start ], [ %k.next, %body ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %done, label %body
body:
  %at = getelementptr ptr, ptr %objects, i64 %k
  %object = load ptr, ptr %at
  call void @py.Py_DecRef(ptr %object)
  %k.next = add i64 %k, 1
  br label %head
done:
  ret void
}
"""
