"""The native entry: LLVM text of the one CPython function through which all compiled programs of a process are called.

`@bw_entry` is a METH_FASTCALL | METH_KEYWORDS function.  Its `self` is a *record*, the tuple
(next, raise_error, table, captured arrays ..., owner); the table (`table.py`) has the operations for this call form.
In Python it would be this; the labels of the blocks are on the right, and each part of the text below has some of them:

    record = self
    while type(record) is tuple:                                                       try, again
        if argument count and keyword names are those of the table:                    names, named
            buffers, objects, held = guards(table, arguments)                          frame            (guards.py, checks.py)
            if all guards hold
            and captured arrays still have their shapes                                captured.*
            and nothing written shares memory:                                         overlap ... into.body      (buffers.py)
                hold the objects of lists, dicts and objects                           hold.*
                try:
                    copy arrays that are not contiguous, make result arrays            copy, prepare    (buffers.py, results.py)
                    get an arena                                                       arena.*          (allocations.py)
                    status = program(buffers, arena)         without the GIL or with   run.*, ran
                    if status:
                        raise_error(status, error record)                              error
                    give the arena back                                                arena.return, arena.give
                    return the result tree of scalars and arrays                       scalars, pack    (results.py)
                except:
                    drop all references; raise, unless there is no exception           fail, raise
        record = record.next                                                           slow
    return record(*arguments, **keywords)    a tail call of the slow path              leave

`python_entry.py` has the same for one record, in Python that runs.
"""

from __future__ import annotations

from bwcompiler.ir.contracts.program_interface import ARENA_ERROR, ERROR_RECORD_BYTES
from bwcompiler.runtime import python_abi as abi
from bwcompiler.runtime.entry.allocations import ARENAS, NEW_ARRAY, NEW_LARGE_ARRAY, RELEASE
from bwcompiler.runtime.entry.buffers import COPIES, OVERLAPS, REACHES
from bwcompiler.runtime.entry.checks import ARRAY_DATA, ATTRIBUTE, KEYS_IN_ORDER, KEYWORDS, MEMBERS, PLAIN_EQUAL
from bwcompiler.runtime.entry.externals import declarations
from bwcompiler.runtime.entry.guards import GUARDS_TEXT
from bwcompiler.runtime.entry.numbers import number_text
from bwcompiler.runtime.entry.results import PACK_TEXT, RESULTS_TEXT, SCALARS_TEXT
from bwcompiler.runtime.entry.words import field, header

SELF_TABLE, SELF_CAPTURED = 2, 3  # indices in the self tuple


def entry_text() -> str:
    """The whole module; it depends only on the interpreter's object layout."""
    checks = (ARRAY_DATA, ATTRIBUTE, KEYWORDS, OVERLAPS, REACHES, PLAIN_EQUAL, KEYS_IN_ORDER, MEMBERS, number_text(), GUARDS_TEXT)
    effects = (NEW_ARRAY, NEW_LARGE_ARRAY, COPIES, RELEASE, _RAISE, ARENAS, RESULTS_TEXT, SCALARS_TEXT, PACK_TEXT)
    function = "".join((_RECORD, _FRAME, _CAPTURED, _OVERLAP, _HOLD, _BUFFERS, _ARENA, _RUN, _RETURN_ARENA, _RESULT, _FAILURE, _NEXT))
    text = "\n".join((*checks, *effects, function))
    return f"{declarations(text)}\n{text}"


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
  %record = call ptr @py.PyBytes_FromStringAndSize(ptr %arena, i64 {ERROR_RECORD_BYTES})
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

# --- the parts of `@bw_entry`, in the order of a call ------------------------------------------------------------------

# The record to try: its table has to be for as many arguments and for these keywords.
_RECORD = f"""
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
"""

# One block on the stack: %buffers first, which is what the program gets, then the other lists.  The guards fill those of the arguments.
_FRAME = f"""\
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
"""

# Captured arrays follow the leaves; one that was resized does not fit any more.
_CAPTURED = f"""\
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
"""

# Arguments that the program writes to must not share memory with other buffers: %lows and %spans are the memory of each buffer.
_OVERLAP = f"""\
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
"""

# From here on there are side effects, and `fail` undoes them.  First, references to objects that lists, dicts and objects may drop
# meanwhile.
_HOLD = """\
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
"""

# %owned has the results that were made, null for the others, so that `fail` can release them at any time.
_BUFFERS = f"""\
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
"""

# Small arenas are part of the frame.
_ARENA = f"""\
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
"""

# The arena begins with the error record.
_RUN = f"""\
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
"""

# The arena goes back whatever the status; the error needs its record before that.
_RETURN_ARENA = f"""\
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
"""

# The result tree takes the references of %owned with it.
_RESULT = """\
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
"""

# Without an exception, `raise_error` declined (a slice was cut: `Specialisation`), and the next record takes the call.
_FAILURE = f"""\
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
"""

# The record does not take the call.  Its frame is given back, so that many records can be tried.
_NEXT = f"""\
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
