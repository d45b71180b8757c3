"""The pool of large memory blocks, in LLVM text: results and arenas take blocks from it and return them for reuse.

Memory that is new from the system costs 0.3 (2 MB pages) to 1.2 ms (4 KB pages) per megabyte, more than the arithmetic of most kernels.
So returned blocks are kept, and reused for the next request of about that size.  Kept blocks are bounded in bytes and in number; the
least recently used one is released first, and blocks that were idle for IDLE_SECONDS are released when another is returned.

    bw_memory_take(bytes) -> ptr       64-byte aligned; null if there is no memory, even after all kept blocks were released
    bw_memory_give(ptr)                return a taken block, from any thread
    bw_memory_trim(bytes, time) -> i64 release the least recently used blocks until at most `bytes` bytes are kept, and none from before
                                       `time`; returns the number of released bytes
    bw_memory_{malloc, calloc, realloc, free}     the same as an allocator of NumPy (NEP 49: numpy/ndarraytypes.h, PyDataMemAllocator)

A block is one private mapping: a page that begins with the length of the rest, and the rest, which is the usable memory.  (So arrays start
at a page, as large blocks of malloc nearly do: a load is delayed by a store to an address slightly lower modulo 4096.)  `numpy_handler`
is the capsule by which an array returns its memory here; the array owns its data like any other.  The code is never unloaded, as
arrays may die after the rest of the interpreter.  One lock guards all state, and is held for a walk over at most KEPT_BLOCKS entries.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys

from bwcompiler.ir.contracts.program_interface import GIVE, TAKE
from bwcompiler.locks import in_forked_child, once
from bwcompiler.runtime import jit, machine, object_cache, python_abi
from bwcompiler.runtime.locks_and_clocks import DECLARE_CLOCK, clock, spin_lock
from bwcompiler.target import default_target

KEPT_BLOCKS = 256
IDLE_SECONDS = 10.0
STATE = ("lock", "limit", "kept", "used", "hits", "misses", "count")     # words of @state

_PAGE, _HUGE = mmap.PAGESIZE, 2 * 2**20
_ADVISE_HUGE = 14                                                        # MADV_HUGEPAGE of Linux
_MOST_BYTES = 2**56
_EXPORTS = ("bw_memory_state", "bw_memory_take", "bw_memory_give", "bw_memory_trim", "bw_memory_malloc", "bw_memory_calloc",
            "bw_memory_realloc", "bw_memory_free")


def _state(name: str) -> str:
    """The address of a word of the state, as a constant expression."""
    return f"getelementptr (i64, ptr @state, i64 {STATE.index(name)})"


def _add(name: str, amount: str, register: str) -> str:
    """Instructions that add to a word of the state; the sum is %<register>."""
    return (f"  %{register}.before = load i64, ptr {_state(name)}\n  %{register} = add i64 %{register}.before, {amount}\n"
            f"  store i64 %{register}, ptr {_state(name)}")


# The length of a block for a number of bytes: whole pages; whole huge pages if at most half of the last one is lost.  -1: too large.
_LENGTH = f"""
define internal i64 @length_for(i64 %bytes) nounwind {{
  %at.least = call i64 @llvm.umax.i64(i64 %bytes, i64 1)
  %some = add i64 %at.least, {_PAGE - 1}
  %pages = and i64 %some, {-_PAGE}
  %rounded = add i64 %pages, {_HUGE - 1}
  %huge = and i64 %rounded, {-_HUGE}
  %lost = sub i64 %huge, %pages
  %little = icmp ule i64 %lost, {_HUGE // 2}
  %many = icmp uge i64 %pages, {_HUGE}
  %use.huge = and i1 %little, %many
  %length = select i1 %use.huge, i64 %huge, i64 %pages
  %impossible = icmp ugt i64 %bytes, {_MOST_BYTES}
  %answer = select i1 %impossible, i64 -1, i64 %length
  ret i64 %answer
}}
"""


# Unmap the memory before and after a block that begins at a multiple of its alignment.
_CUT = """\
  %before = sub i64 %block.address, %address
  %after = sub i64 %last.start, %data.address
  %has.before = icmp ne i64 %before, 0
  br i1 %has.before, label %cut.before, label %cut
cut.before:
  %cut.one = call i32 @munmap(ptr %found, i64 %before)
  br label %cut
cut:
  %has.after = icmp ne i64 %after, 0
  br i1 %has.after, label %cut.after, label %check
cut.after:
  %end = getelementptr i8, ptr %data, i64 %length
  %cut.two = call i32 @munmap(ptr %end, i64 %after)
  br label %check
"""


def _map_text() -> str:
    """Map a new block; large ones start at a huge page, with madvise(MADV_HUGEPAGE)."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    advise = f"  %ignored = call i32 @madvise(ptr %data, i64 %length, i32 {_ADVISE_HUGE})\n" if sys.platform == "linux" else ""
    return f"""
define internal ptr @map(i64 %length) nounwind {{
start:
  %large = icmp uge i64 %length, {_HUGE}
  %alignment = select i1 %large, i64 {_HUGE}, i64 {_PAGE}
  %wanted = add i64 %length, %alignment
  %found = call ptr @mmap(ptr null, i64 %wanted, i32 {protection}, i32 {flags}, i32 -1, i64 0)
  %address = ptrtoint ptr %found to i64
  %failed = icmp eq i64 %address, -1
  br i1 %failed, label %none, label %mapped
mapped:
  %last.start = add i64 %address, %alignment
  %mask = sub i64 0, %alignment
  %data.address = and i64 %last.start, %mask
  %data = inttoptr i64 %data.address to ptr
  %block = getelementptr i8, ptr %data, i64 {-_PAGE}
  %block.address = sub i64 %data.address, {_PAGE}
{_CUT}check:
  br i1 %large, label %advise, label %done
advise:
{advise}  br label %done
done:
  store i64 %length, ptr %block
  ret ptr %data
none:
  ret ptr null
}}
"""


# Return a block to the system.
_UNMAP = f"""\
define internal void @unmap(ptr %data, i64 %length) nounwind {{
  %block = getelementptr i8, ptr %data, i64 {-_PAGE}
  %whole = add i64 %length, {_PAGE}
  %ignored = call i32 @munmap(ptr %block, i64 %whole)
  ret void
}}
"""

# Drop entry %k of the table, with the lock held: the last entry takes its place.
_DROP = f"""
define internal ptr @drop(i64 %k) nounwind {{
  %length.at = getelementptr i64, ptr @lengths, i64 %k
  %length = load i64, ptr %length.at
  %lost = sub i64 0, %length
{_add("kept", "%lost", "kept")}
{_add("count", "-1", "last")}
  %block.at = getelementptr ptr, ptr @blocks, i64 %k
  %block = load ptr, ptr %block.at
  %last.block.at = getelementptr ptr, ptr @blocks, i64 %last
  %last.block = load ptr, ptr %last.block.at
  store ptr %last.block, ptr %block.at
  %last.length.at = getelementptr i64, ptr @lengths, i64 %last
  %last.length = load i64, ptr %last.length.at
  store i64 %last.length, ptr %length.at
  %time.at = getelementptr i64, ptr @times, i64 %k
  %last.time.at = getelementptr i64, ptr @times, i64 %last
  %last.time = load i64, ptr %last.time.at
  store i64 %last.time, ptr %time.at
  ret ptr %block
}}
"""

# The smallest kept block that is long enough and at most a quarter longer; of equal ones the most recently used.
_TAKE = f"""
define ptr @bw_memory_take(i64 %bytes) nounwind {{
start:
  %length = call i64 @length_for(i64 %bytes)
  %impossible = icmp slt i64 %length, 0
  br i1 %impossible, label %no.memory, label %search
search:
  %quarter = lshr i64 %length, 2
  %longest = add i64 %length, %quarter
  call void @lock()
  %count = load i64, ptr {_state("count")}
  br label %head
head:
  %k = phi i64 [ 0, %search ], [ %k.next, %look ]
  %best = phi i64 [ -1, %search ], [ %best.next, %look ]
  %best.length = phi i64 [ %longest, %search ], [ %best.length.next, %look ]
  %best.time = phi i64 [ -1, %search ], [ %best.time.next, %look ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %found, label %look
look:
  %length.at = getelementptr i64, ptr @lengths, i64 %k
  %this.length = load i64, ptr %length.at
  %time.at = getelementptr i64, ptr @times, i64 %k
  %this.time = load i64, ptr %time.at
  %enough = icmp uge i64 %this.length, %length
  %shorter = icmp ult i64 %this.length, %best.length
  %equal = icmp eq i64 %this.length, %best.length
  %later = icmp sge i64 %this.time, %best.time
  %equal.later = and i1 %equal, %later
  %better = or i1 %shorter, %equal.later
  %fits = and i1 %enough, %better
  %best.next = select i1 %fits, i64 %k, i64 %best
  %best.length.next = select i1 %fits, i64 %this.length, i64 %best.length
  %best.time.next = select i1 %fits, i64 %this.time, i64 %best.time
  %k.next = add i64 %k, 1
  br label %head
found:
  %is.miss = icmp eq i64 %best, -1
  br i1 %is.miss, label %miss, label %hit
hit:
{_add("hits", "1", "hits")}
{_add("used", "%best.length", "used.hit")}
  %kept = call ptr @drop(i64 %best)
  call void @unlock()
  br label %answer
miss:
{_add("misses", "1", "misses")}
  call void @unlock()
  %new = call ptr @map(i64 %length)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %release, label %count.new
release:
  %released = call i64 @bw_memory_trim(i64 0, i64 0)
  %again = call ptr @map(i64 %length)
  %failed.again = icmp eq ptr %again, null
  br i1 %failed.again, label %no.memory, label %count.new
count.new:
  %mapped = phi ptr [ %new, %miss ], [ %again, %release ]
  call void @lock()
{_add("used", "%length", "used.miss")}
  call void @unlock()
  br label %answer
answer:
  %block = phi ptr [ %kept, %hit ], [ %mapped, %count.new ]
  ret ptr %block
no.memory:
  ret ptr null
}}
"""

_GIVE = f"""
define void @bw_memory_give(ptr %block) nounwind {{
start:
  %header = getelementptr i8, ptr %block, i64 {-_PAGE}
  %length = load i64, ptr %header
  %limit = load i64, ptr {_state("limit")}
  %room = sub i64 %limit, %length
  %lost = sub i64 0, %length
  call void @lock()
{_add("used", "%lost", "used")}
  call void @unlock()
  %too.long = icmp slt i64 %room, 0
  br i1 %too.long, label %unmap, label %make.room
make.room:
  %now = call i64 @now()
  %oldest = sub i64 %now, {int(IDLE_SECONDS * 1e9)}
  %released = call i64 @bw_memory_trim(i64 %room, i64 %oldest)
  call void @lock()
  %count = load i64, ptr {_state("count")}
  %full = icmp uge i64 %count, {KEPT_BLOCKS}
  br i1 %full, label %unlock, label %keep
keep:
  %block.at = getelementptr ptr, ptr @blocks, i64 %count
  store ptr %block, ptr %block.at
  %length.at = getelementptr i64, ptr @lengths, i64 %count
  store i64 %length, ptr %length.at
  %time.at = getelementptr i64, ptr @times, i64 %count
  store i64 %now, ptr %time.at
{_add("count", "1", "count.next")}
{_add("kept", "%length", "kept")}
  call void @unlock()
  ret void
unlock:
  call void @unlock()
  br label %unmap
unmap:
  call void @unmap(ptr %block, i64 %length)
  ret void
}}
"""

_TRIM = f"""
define i64 @bw_memory_trim(i64 %limit, i64 %oldest) nounwind {{
start:
  br label %again
again:
  %released = phi i64 [ 0, %start ], [ %released.next, %unmap ]
  call void @lock()
  %count = load i64, ptr {_state("count")}
  br label %head
head:
  %k = phi i64 [ 0, %again ], [ %k.next, %look ]
  %first = phi i64 [ -1, %again ], [ %first.next, %look ]
  %first.time = phi i64 [ {2**63 - 1}, %again ], [ %first.time.next, %look ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %decide, label %look
look:
  %time.at = getelementptr i64, ptr @times, i64 %k
  %time = load i64, ptr %time.at
  %earlier = icmp slt i64 %time, %first.time
  %first.next = select i1 %earlier, i64 %k, i64 %first
  %first.time.next = select i1 %earlier, i64 %time, i64 %first.time
  %k.next = add i64 %k, 1
  br label %head
decide:
  %kept = load i64, ptr {_state("kept")}
  %over = icmp sgt i64 %kept, %limit
  %full = icmp uge i64 %count, {KEPT_BLOCKS}
  %idle = icmp slt i64 %first.time, %oldest
  %some = icmp ne i64 %first, -1
  %crowded = or i1 %over, %full
  %reason = or i1 %crowded, %idle
  %go = and i1 %some, %reason
  br i1 %go, label %unmap, label %done
unmap:
  %block = call ptr @drop(i64 %first)
  call void @unlock()
  %header = getelementptr i8, ptr %block, i64 {-_PAGE}
  %length = load i64, ptr %header
  call void @unmap(ptr %block, i64 %length)
  %released.next = add i64 %released, %length
  br label %again
done:
  call void @unlock()
  ret i64 %released
}}
"""

_ALLOCATOR = f"""
define ptr @bw_memory_malloc(ptr %context, i64 %bytes) nounwind {{
  %data = call ptr @bw_memory_take(i64 %bytes)
  ret ptr %data
}}
define ptr @bw_memory_calloc(ptr %context, i64 %count, i64 %size) nounwind {{
start:
  %product = call {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64 %count, i64 %size)
  %bytes = extractvalue {{ i64, i1 }} %product, 0
  %overflow = extractvalue {{ i64, i1 }} %product, 1
  br i1 %overflow, label %none, label %take
take:
  %data = call ptr @bw_memory_take(i64 %bytes)
  %missing = icmp eq ptr %data, null
  br i1 %missing, label %none, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %data, i8 0, i64 %bytes, i1 false)
  ret ptr %data
none:
  ret ptr null
}}
define ptr @bw_memory_realloc(ptr %context, ptr %old, i64 %bytes) nounwind {{
start:
  %fresh = icmp eq ptr %old, null
  br i1 %fresh, label %allocate, label %measure
allocate:
  %first = call ptr @bw_memory_take(i64 %bytes)
  ret ptr %first
measure:
  %header = getelementptr i8, ptr %old, i64 {-_PAGE}
  %length = load i64, ptr %header
  %wanted = call i64 @length_for(i64 %bytes)
  %same = icmp eq i64 %length, %wanted
  br i1 %same, label %keep, label %take
keep:
  ret ptr %old
take:
  %new = call ptr @bw_memory_take(i64 %bytes)
  %missing = icmp eq ptr %new, null
  br i1 %missing, label %none, label %copy
copy:
  %common = call i64 @llvm.umin.i64(i64 %length, i64 %bytes)
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %old, i64 %common, i1 false)
  call void @bw_memory_give(ptr %old)
  ret ptr %new
none:
  ret ptr null
}}
define void @bw_memory_free(ptr %context, ptr %data, i64 %bytes) nounwind {{
start:
  %nothing = icmp eq ptr %data, null
  br i1 %nothing, label %done, label %give
give:
  call void @bw_memory_give(ptr %data)
  br label %done
done:
  ret void
}}
define ptr @bw_memory_state() nounwind {{
  ret ptr @state
}}
"""


def _text() -> str:
    declarations = f"""
@state = internal global [{len(STATE)} x i64] zeroinitializer, align 64
@blocks = internal global [{KEPT_BLOCKS} x ptr] zeroinitializer
@lengths = internal global [{KEPT_BLOCKS} x i64] zeroinitializer
@times = internal global [{KEPT_BLOCKS} x i64] zeroinitializer
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i32 @madvise(ptr, i64, i32)
declare {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
    parts = (_LENGTH, _map_text(), _UNMAP, _DROP, _TAKE, _GIVE, _TRIM, _ALLOCATOR)
    return declarations + DECLARE_CLOCK + clock() + spin_lock("@state") + "".join(parts)


class _Handler(ctypes.Structure):
    """PyDataMem_Handler, version 1."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


class MemoryPool:
    """The pool of this process: addresses of its functions, its state, and NumPy's handler."""

    def __init__(self) -> None:
        code = jit.load_for_ever(object_cache.object_for(_text(), default_target()), {}, _EXPORTS)
        self.addresses = code.addresses
        self.state = (ctypes.c_int64 * len(STATE)).from_address(ctypes.CFUNCTYPE(ctypes.c_void_p)(code.addresses["bw_memory_state"])())
        self.trim = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(code.addresses["bw_memory_trim"])
        functions = [code.addresses[f"bw_memory_{name}"] for name in ("malloc", "calloc", "realloc", "free")]
        self._handler = _Handler(b"bwcompiler", 1, None, *functions)
        self.numpy_handler = python_abi.new_capsule(ctypes.addressof(self._handler), b"mem_handler")
        python_abi.make_immortal(self._handler, self.numpy_handler)

    def word(self, name: str) -> int:
        """A word of the state."""
        return self.state[STATE.index(name)]

    def set_limit(self, limit: int) -> None:
        """Keep at most `limit` bytes from now on."""
        self.state[STATE.index("limit")] = limit
        self.trim(limit, 0)

    def empty_in_child(self) -> None:
        """In a forked child: drop kept blocks, which would be copied page by page on write; new memory is cheaper."""
        self.state[STATE.index("lock")] = 0
        self.trim(0, 0)

    def symbols(self) -> dict[str, int]:
        """The symbols for the native entry, with their addresses."""
        return {"mem.take": self.addresses[TAKE], "mem.give": self.addresses[GIVE],
                "mem.handler": id(self.numpy_handler)}


@once
def pool() -> MemoryPool:
    """The pool of this process; requires `python_abi.is_supported`."""
    made = MemoryPool()
    made.set_limit(_limit())
    in_forked_child(made.empty_in_child)
    return made


def functions() -> dict[str, int]:
    """The addresses of bw_memory_take and bw_memory_give; without a pool, of malloc and free."""
    if not python_abi.is_supported():
        library = ctypes.CDLL(None)
        return {name: ctypes.cast(function, ctypes.c_void_p).value or 0
                for name, function in ((TAKE, library.malloc), (GIVE, library.free))}
    return {name: pool().addresses[name] for name in (TAKE, GIVE)}


def _limit() -> int:
    text = os.environ.get("BW_MEMORY_BYTES")
    if text is None:
        return machine.usable_memory() // 8
    if not text.strip().isdecimal():
        raise ValueError(f"BW_MEMORY_BYTES={text!r}: expected a number of bytes, such as BW_MEMORY_BYTES=1000000000, or 0")
    return min(int(text), 2**62)
