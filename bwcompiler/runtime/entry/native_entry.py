"""The native entry: LLVM text of the one CPython function through which all compiled programs of a process are called.

`@bw_entry` is a METH_FASTCALL | METH_KEYWORDS function.  Its `self` is a *record*, the tuple
(next, raise_error, table, captured arrays ..., owner); the table (`table.py`) has the operations for this call form.
Guards have no side effects.  If one fails, the next record is tried, until `next` is not a tuple but the slow path, a
callable that is tail-called with the same arguments.  The order is: reads from outside and guards; references to arrays
in lists and dicts, which may change meanwhile; copies of arrays that are not contiguous; new result arrays; an arena;
the program, without the GIL if the signature says so; the result tree.  All failures after the guards go to one block
that drops all references.  `python_entry.py` is the same in Python.
"""

from __future__ import annotations

from bwcompiler.ir.contracts.program_interface import ARENA_ERROR, ERROR_RECORD_BYTES
from bwcompiler.runtime import python_abi as abi
from bwcompiler.runtime.entry.allocations import ARENAS, NEW_ARRAY, NEW_LARGE_ARRAY, RELEASE
from bwcompiler.runtime.entry.buffers import COPIES, OVERLAPS, REACHES
from bwcompiler.runtime.entry.checks import ARRAY_DATA, ATTRIBUTE, KEYWORDS, PLAIN_EQUAL
from bwcompiler.runtime.entry.externals import declarations
from bwcompiler.runtime.entry.numbers import number_text
from bwcompiler.runtime.entry.results import PACK_TEXT, RESULTS_TEXT, SCALARS_TEXT
from bwcompiler.runtime.entry.table import GUARD_BYTES, GUARDS, SOURCES
from bwcompiler.runtime.entry.words import field, header, switch, word

SELF_TABLE, SELF_CAPTURED = 2, 3  # indices in the self tuple


def entry_text() -> str:
    """The whole module; it depends only on the interpreter's object layout."""
    checks = (ARRAY_DATA, ATTRIBUTE, KEYWORDS, OVERLAPS, REACHES, PLAIN_EQUAL, number_text(), _GUARDS)
    effects = (NEW_ARRAY, NEW_LARGE_ARRAY, COPIES, RELEASE, _RAISE, ARENAS, RESULTS_TEXT, SCALARS_TEXT, PACK_TEXT)
    text = "\n".join((*checks, *effects, _ENTRY))
    return f"{declarations(text)}\n{text}"


# --- the parts of a call ----------------------------------------------------------------------------------------------

# Walk the arguments: data pointers go into %buffers, leaves into %objects, and those in lists and dicts also into %held.
_GUARDS = f"""
define internal i1 @bw.guards(ptr %table, ptr %arguments, ptr %buffers, ptr %objects, ptr %held,
                              ptr %registers, ptr %slots) nounwind {{
start:
{header("guards")}
  %first.op = getelementptr i8, ptr %table, i64 %guards
  store ptr %arguments, ptr %registers
  %first.register = getelementptr ptr, ptr %registers, i64 1
  br label %fetch
fetch:
  %op = phi ptr [ %first.op, %start ], [ %op.next, %leaf ], [ %op.next, %accept ], [ %op.next, %enter ]
  %hold = phi ptr [ %held, %start ], [ %hold.next, %leaf ], [ %hold, %accept ], [ %hold, %enter ]
  %slot = phi ptr [ %slots, %start ], [ %slot.next, %leaf ], [ %slot, %accept ], [ %slot, %enter ]
  %open = phi ptr [ %first.register, %start ], [ %open, %leaf ], [ %open, %accept ], [ %open.next, %enter ]
  %code = load i64, ptr %op
  %op.next = getelementptr i8, ptr %op, i64 {GUARD_BYTES}
  %finished = icmp eq i64 %code, {GUARDS["end"]}
  br i1 %finished, label %pass, label %source
source:
{word(1, "from")}
{word(2, "base.word")}
{word(3, "index")}
{word(4, "a")}
{word(5, "b")}
{word(7, "number.of.leaf")}
  %key = inttoptr i64 %index to ptr
  %outside = inttoptr i64 %base.word to ptr
{switch("%from", {f"from.{name}": number for name, number in SOURCES.items()}, "fail")}
from.item:
  %base.at = getelementptr ptr, ptr %registers, i64 %base.word
  %base = load ptr, ptr %base.at
  %item.at = getelementptr ptr, ptr %base, i64 %index
  %item.object = load ptr, ptr %item.at
  br label %dispatch
from.entry:
  %dict.at = getelementptr ptr, ptr %registers, i64 %base.word
  %dict.base = load ptr, ptr %dict.at
  br label %lookup
from.global:
  br label %lookup
lookup:
  %dict.object = phi ptr [ %dict.base, %from.entry ], [ %outside, %from.global ]
  %found = call ptr @py.PyDict_GetItemWithError(ptr %dict.object, ptr %key)
  %missing = icmp eq ptr %found, null
  br i1 %missing, label %lookup.failed, label %dispatch
lookup.failed:
  call void @py.PyErr_Clear()
  ret i1 false
from.cell:
{field("contents", abi.CELL_CONTENTS, "%outside")}
  %unset = icmp eq ptr %contents, null
  br i1 %unset, label %fail, label %dispatch
from.attribute:
  %attribute = call ptr @bw.attribute(ptr %outside, ptr %key)
  %no.attribute = icmp eq ptr %attribute, null
  br i1 %no.attribute, label %fail, label %dispatch
from.list_item:
{field("length", abi.CONTAINER_SIZE, "%outside", "i64")}
  %in.list = icmp ult i64 %index, %length
  br i1 %in.list, label %list.item, label %fail
list.item:
{field("members", abi.LIST_ITEMS, "%outside")}
  %member.at = getelementptr ptr, ptr %members, i64 %index
  %member = load ptr, ptr %member.at
  br label %dispatch
from.slot:
  %slot.at = getelementptr i8, ptr %outside, i64 %index
  %pointed = load ptr, ptr %slot.at
  %empty.slot = icmp eq ptr %pointed, null
  br i1 %empty.slot, label %fail, label %dispatch
from.itself:
  br label %dispatch
dispatch:
  %object = phi ptr [ %item.object, %from.item ], [ %found, %lookup ], [ %contents, %from.cell ],
                    [ %attribute, %from.attribute ], [ %member, %list.item ], [ %pointed, %from.slot ],
                    [ %outside, %from.itself ]
{field("type", abi.TYPE)}
  %size.at = getelementptr i8, ptr %object, i64 {abi.CONTAINER_SIZE}
  %a.pointer = inttoptr i64 %a to ptr
{switch("%code", {name: number for name, number in GUARDS.items() if name != "end"}, "fail")}
array:
  %spec = getelementptr i8, ptr %table, i64 %a
  %array.data = call ptr @bw.array_data(ptr %object, ptr %spec, i64 %b)
  %array.bad = icmp eq ptr %array.data, null
  br i1 %array.bad, label %fail, label %leaf
number:
  %number.data = call ptr @bw.number(ptr %object, i64 %a, i64 %b, ptr %slot)
  %slot.used = getelementptr i8, ptr %slot, i64 16
  %number.bad = icmp eq ptr %number.data, null
  br i1 %number.bad, label %fail, label %number.keep
number.keep:
  %is.argument = icmp ule i64 %from, {SOURCES["entry"]}
  br i1 %is.argument, label %leaf, label %number.copy
number.copy:
  %number.bits = load i128, ptr %number.data, align 1
  store i128 %number.bits, ptr %slot, align 1
  br label %leaf
scalar:
  %scalar.data = getelementptr i8, ptr %object, i64 {abi.NUMBER_VALUE}
  %scalar.ok = icmp eq ptr %type, %a.pointer
  br i1 %scalar.ok, label %leaf, label %fail
leaf:
  %data = phi ptr [ %array.data, %array ], [ %number.data, %number.keep ], [ %slot, %number.copy ], [ %scalar.data, %scalar ]
  %slot.next = phi ptr [ %slot, %array ], [ %slot.used, %number.keep ], [ %slot.used, %number.copy ], [ %slot, %scalar ]
  %buffer.at = getelementptr ptr, ptr %buffers, i64 %number.of.leaf
  store ptr %data, ptr %buffer.at
  %object.at = getelementptr ptr, ptr %objects, i64 %number.of.leaf
  store ptr %object, ptr %object.at
{word(6, "hold.this")}
  store ptr %object, ptr %hold
  %hold.next = getelementptr ptr, ptr %hold, i64 %hold.this
  br label %fetch
same:
  %is.same = icmp eq ptr %object, %a.pointer
  br i1 %is.same, label %accept, label %fail
plain:
  %is.plain = call i1 @bw.plain_equal(ptr %object, ptr %a.pointer)
  br i1 %is.plain, label %accept, label %fail
size:
  %count = load i64, ptr %size.at
  %count.ok = icmp eq i64 %count, %a
  br i1 %count.ok, label %accept, label %fail
bytes:
{field("memory", abi.ARRAY_DATA)}
  %difference = call i32 @c.memcmp(ptr %memory, ptr %a.pointer, i64 %b)
  %unchanged = icmp eq i32 %difference, 0
  br i1 %unchanged, label %accept, label %fail
known:
  %known.spec = getelementptr i8, ptr %table, i64 %a
  %known.data = call ptr @bw.array_data(ptr %object, ptr %known.spec, i64 %b)
  %known.bad = icmp eq ptr %known.data, null
  br i1 %known.bad, label %fail, label %known.compare
known.compare:
{word(6, "known.wanted")}
  %known.pointer = inttoptr i64 %known.wanted to ptr
  %known.other = call i32 @c.memcmp(ptr %known.data, ptr %known.pointer, i64 %number.of.leaf)
  %known.same = icmp eq i32 %known.other, 0
  br i1 %known.same, label %accept, label %fail
holds:
  %answer = call i32 @py.PyObject_RichCompareBool(ptr %object, ptr @py._Py_NoneStruct, i32 2)
  %yes = icmp eq i32 %answer, 1
  br i1 %yes, label %accept, label %no
no:
  call void @py.PyErr_Clear()
  ret i1 false
none:
  %is.none = icmp eq ptr %object, @py._Py_NoneStruct
  br i1 %is.none, label %accept, label %fail
accept:
  br label %fetch
tuple:
  %is.tuple = icmp eq ptr %type, @py.PyTuple_Type
  br i1 %is.tuple, label %tuple.items, label %fail
tuple.items:
  %tuple.base = getelementptr i8, ptr %object, i64 {abi.TUPLE_ITEMS}
  br label %sized
list:
  %is.list = icmp eq ptr %type, @py.PyList_Type
  br i1 %is.list, label %list.items, label %fail
list.items:
{field("list.base", abi.LIST_ITEMS)}
  br label %sized
dict:
  %is.dict = icmp eq ptr %type, @py.PyDict_Type
  br i1 %is.dict, label %sized, label %fail
sized:
  %inner = phi ptr [ %tuple.base, %tuple.items ], [ %list.base, %list.items ], [ %object, %dict ]
  %item.count = load i64, ptr %size.at
  %size.ok = icmp eq i64 %item.count, %a
  br i1 %size.ok, label %enter, label %fail
enter:
  store ptr %inner, ptr %open
  %open.next = getelementptr ptr, ptr %open, i64 1
  br label %fetch
pass:
  ret i1 true
fail:
  ret i1 false
}}
"""

# Call raise_error(code, record) (item 1 of `self`), unless the program has set an exception.  Without an arena the record is empty.
# If it returns, the next record takes the call.
_RAISE = f"""
define internal void @bw.raise(ptr %self, i32 %status, ptr %arena) noinline cold nounwind {{
start:
  %arguments = alloca [2 x ptr]
  %pending = call ptr @py.PyErr_Occurred()
  %is.pending = icmp ne ptr %pending, null
  br i1 %is.pending, label %done, label %code
code:
  %wide = sext i32 %status to i64
  %code.object = call ptr @py.PyLong_FromLong(i64 %wide)
  %record = call ptr @py.PyBytes_FromStringAndSize(ptr %arena, i64 64)
  store ptr %code.object, ptr %arguments
  %second = getelementptr ptr, ptr %arguments, i64 1
  store ptr %record, ptr %second
  %no.code = icmp eq ptr %code.object, null
  %no.record = icmp eq ptr %record, null
  %no.memory = or i1 %no.code, %no.record
  br i1 %no.memory, label %drop, label %callback
callback:
  %function.at = getelementptr i8, ptr %self, i64 {abi.TUPLE_ITEMS + 8}
  %function = load ptr, ptr %function.at
  %answer = call ptr @py.PyObject_Vectorcall(ptr %function, ptr %arguments, i64 2, ptr null)
  %raised = icmp eq ptr %answer, null
  br i1 %raised, label %drop, label %returned
returned:
  call void @py.Py_DecRef(ptr %answer)
  br label %drop
drop:
  call void @bw.release(ptr %arguments, i64 2)
  br label %done
done:
  ret void
}}
"""

_ENTRY = f"""
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare ptr @llvm.stacksave.p0()
declare void @llvm.stackrestore.p0(ptr)
define ptr @bw_entry(ptr %first, ptr %arguments, i64 %count, ptr %keywords) nounwind {{
start:
  %stack.before = call ptr @llvm.stacksave.p0()
  br label %try
try:
  %self = phi ptr [ %first, %start ], [ %next, %again ]
  %table.object.at = getelementptr i8, ptr %self, i64 {abi.TUPLE_ITEMS + 8 * SELF_TABLE}
  %table.object = load ptr, ptr %table.object.at
  %table = getelementptr i8, ptr %table.object, i64 {abi.BYTES_DATA}
{header("argument_count")}
  %count.same = icmp eq i64 %count, %argument_count
  br i1 %count.same, label %names, label %slow
names:
{header("keyword_count")}
{header("keywords", name_as="keyword.names")}
  %positional = icmp eq ptr %keywords, null
  %no.keywords = icmp eq i64 %keyword_count, 0
  %both.none = and i1 %positional, %no.keywords
  br i1 %both.none, label %frame, label %named
named:
  %names.wanted = getelementptr i8, ptr %table, i64 %keyword.names
  %names.ok = call i1 @bw.keywords(ptr %keywords, ptr %names.wanted, i64 %keyword_count)
  br i1 %names.ok, label %frame, label %slow
frame:
{header("frame_bytes")}
{header("objects_at")}
{header("held_at")}
{header("owned_at")}
{header("stack_at")}
{header("registers_at")}
{header("slots_at")}
{header("leaf_count")}
{header("captured_count")}
{header("held_count")}
{header("result_count")}
  %buffers = alloca i8, i64 %frame_bytes, align 64
  %objects = getelementptr i8, ptr %buffers, i64 %objects_at
  %held = getelementptr i8, ptr %buffers, i64 %held_at
  %owned = getelementptr i8, ptr %buffers, i64 %owned_at
  %stack = getelementptr i8, ptr %buffers, i64 %stack_at
  %registers = getelementptr i8, ptr %buffers, i64 %registers_at
  %result.slots = getelementptr i8, ptr %buffers, i64 %slots_at
  %result.slots.bytes = mul i64 %result_count, 16
  %slots = getelementptr i8, ptr %result.slots, i64 %result.slots.bytes
  %fits = call i1 @bw.guards(ptr %table, ptr %arguments, ptr %buffers, ptr %objects, ptr %held,
                             ptr %registers, ptr %slots)
{header("captured_specs")}
  %captured.table = getelementptr i8, ptr %table, i64 %captured_specs
  br i1 %fits, label %captured.head, label %slow

captured.head:
  %c = phi i64 [ 0, %frame ], [ %c.next, %captured.kept ]
  %captured.end = icmp eq i64 %c, %captured_count
  br i1 %captured.end, label %overlap, label %captured.body
captured.body:
  %captured = getelementptr i8, ptr %self, i64 {abi.TUPLE_ITEMS + 8 * SELF_CAPTURED}
  %captured.at = getelementptr ptr, ptr %captured, i64 %c
  %captured.array = load ptr, ptr %captured.at
  %captured.spec.at = getelementptr [2 x i64], ptr %captured.table, i64 %c
  %captured.spec.offset = load i64, ptr %captured.spec.at
  %captured.spec = getelementptr i8, ptr %table, i64 %captured.spec.offset
  %captured.flags.at = getelementptr i64, ptr %captured.spec.at, i64 1
  %captured.flags = load i64, ptr %captured.flags.at
  %captured.data = call ptr @bw.array_data(ptr %captured.array, ptr %captured.spec, i64 %captured.flags)
  %captured.resized = icmp eq ptr %captured.data, null
  br i1 %captured.resized, label %slow, label %captured.kept
captured.kept:
  %captured.buffer = add i64 %leaf_count, %c
  %captured.buffer.at = getelementptr ptr, ptr %buffers, i64 %captured.buffer
  store ptr %captured.data, ptr %captured.buffer.at
  %captured.object.at = getelementptr ptr, ptr %objects, i64 %captured.buffer
  store ptr %captured.array, ptr %captured.object.at
  %c.next = add i64 %c, 1
  br label %captured.head

overlap:
{header("into_count")}
{header("into")}
{header("sizes")}
{header("copied_count")}
{header("copied")}
  %copied.leaves = getelementptr i8, ptr %table, i64 %copied
  %nothing.written = icmp eq i64 %into_count, 0
  br i1 %nothing.written, label %hold.head, label %ranges
ranges:
  %sizes.table = getelementptr i8, ptr %table, i64 %sizes
  %into.table = getelementptr i8, ptr %table, i64 %into
  %shared = add i64 %leaf_count, %captured_count
  %shared.bytes = mul i64 %shared, 8
  %lows = alloca i8, i64 %shared.bytes, align 64
  %spans = alloca i8, i64 %shared.bytes, align 64
  call void @llvm.memcpy.p0.p0.i64(ptr %lows, ptr %buffers, i64 %shared.bytes, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %spans, ptr %sizes.table, i64 %shared.bytes, i1 false)
  call void @bw.reaches(ptr %copied.leaves, i64 %copied_count, ptr %objects, ptr %lows, ptr %spans)
  br label %into.head
into.head:
  %w = phi i64 [ 0, %ranges ], [ %w.next, %into.body ]
  %w.next = add i64 %w, 1
  %into.end = icmp eq i64 %w, %into_count
  br i1 %into.end, label %hold.head, label %into.body
into.body:
  %written.at = getelementptr i64, ptr %into.table, i64 %w
  %written = load i64, ptr %written.at
  %overlaps = call i1 @bw.overlaps(ptr %lows, ptr %spans, i64 %shared, i64 %written)
  br i1 %overlaps, label %slow, label %into.head

hold.head:
  %h = phi i64 [ 0, %overlap ], [ 0, %into.head ], [ %h.next, %hold.body ]
  %hold.end = icmp eq i64 %h, %held_count
  br i1 %hold.end, label %copy, label %hold.body
hold.body:
  %hold.at = getelementptr ptr, ptr %held, i64 %h
  %hold.object = load ptr, ptr %hold.at
  call void @py.Py_IncRef(ptr %hold.object)
  %h.next = add i64 %h, 1
  br label %hold.head

copy:
{header("copies_at")}
  %copies = getelementptr i8, ptr %buffers, i64 %copies_at
  %owned.bytes = mul i64 %result_count, 8
  call void @llvm.memset.p0.i64(ptr %owned, i8 0, i64 %owned.bytes, i1 false)
  %contiguous = call i1 @bw.copies(ptr %copied.leaves, i64 %copied_count, ptr %objects, ptr %buffers, ptr %copies)
  br i1 %contiguous, label %prepare, label %fail
prepare:
  %prepared = call i1 @bw.results(ptr %table, ptr %buffers, ptr %objects, ptr %owned, ptr %result.slots)
  br i1 %prepared, label %arena.choose, label %fail
arena.choose:
{header("arena_at")}
{header("arena_slots", type_="ptr")}
  %arena.on.heap = icmp eq i64 %arena_at, 0
  br i1 %arena.on.heap, label %arena.take, label %arena.stack
arena.stack:
  %arena.of.frame = getelementptr i8, ptr %buffers, i64 %arena_at
  br label %run
arena.take:
{header("arena_bytes")}
  %arena.of.heap = call ptr @bw.take_arena(ptr %arena_slots, i64 %arena_bytes)
  %arena.missing = icmp eq ptr %arena.of.heap, null
  br i1 %arena.missing, label %no.arena, label %run

run:
  %arena = phi ptr [ %arena.of.frame, %arena.stack ], [ %arena.of.heap, %arena.take ]
  call void @llvm.memset.p0.i64(ptr align 64 %arena, i8 0, i64 {ERROR_RECORD_BYTES}, i1 false)
{header("program", type_="ptr")}
{header("release_gil")}
  %release = icmp ne i64 %release_gil, 0
  br i1 %release, label %run.free, label %run.locked
run.locked:
  %status.locked = call i32 %program(ptr %buffers, ptr %arena)
  br label %ran
run.free:
  %thread = call ptr @py.PyEval_SaveThread()
  %status.free = call i32 %program(ptr %buffers, ptr %arena)
  call void @py.PyEval_RestoreThread(ptr %thread)
  br label %ran
ran:
  %status = phi i32 [ %status.locked, %run.locked ], [ %status.free, %run.free ]
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %arena.return, label %error
error:
  call void @bw.raise(ptr %self, i32 %status, ptr %arena)
  br label %arena.return
arena.return:
  br i1 %arena.on.heap, label %arena.give, label %finish
arena.give:
{header("arena_bytes", name_as="arena_bytes.given")}
  call void @bw.give_arena(ptr %arena_slots, ptr %arena, i64 %arena_bytes.given)
  br label %finish
finish:
  br i1 %ok, label %scalars, label %fail
scalars:
  %converted = call i1 @bw.scalars(ptr %table, ptr %owned, ptr %result.slots)
  br i1 %converted, label %pack, label %fail
pack:
  %answer = call ptr @bw.pack(ptr %table, ptr %owned, ptr %stack)
  %unpacked = icmp eq ptr %answer, null
  br i1 %unpacked, label %fail, label %success
success:
  call void @bw.release(ptr %owned, i64 %result_count)
  call void @bw.release(ptr %copies, i64 %copied_count)
  call void @bw.release(ptr %held, i64 %held_count)
  ret ptr %answer

no.arena:
  call void @bw.raise(ptr %self, i32 {ARENA_ERROR}, ptr null)
  br label %fail
fail:
  call void @bw.release(ptr %owned, i64 %result_count)
  call void @bw.release(ptr %copies, i64 %copied_count)
  call void @bw.release(ptr %held, i64 %held_count)
  %exception = call ptr @py.PyErr_Occurred()
  %is.exception = icmp ne ptr %exception, null
  br i1 %is.exception, label %raise, label %slow
raise:
  ret ptr null
slow:
  %slow.at = getelementptr i8, ptr %self, i64 {abi.TUPLE_ITEMS}
  %next = load ptr, ptr %slow.at
  call void @llvm.stackrestore.p0(ptr %stack.before)
{field("next.type", abi.TYPE, "%next")}
  %is.record = icmp eq ptr %next.type, @py.PyTuple_Type
  br i1 %is.record, label %again, label %leave
again:
  br label %try
leave:
  %slow.result = tail call ptr @py.PyObject_Vectorcall(ptr %next, ptr %arguments, i64 %count, ptr %keywords)
  ret ptr %slow.result
}}
"""
