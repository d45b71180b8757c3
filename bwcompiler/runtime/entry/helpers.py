"""LLVM text of the helper functions of the native entry (`native_entry.py`), and declarations of what they call.

An array *specification* is {ptr descr, i32 type number, i32 rank, [rank x i64] shape}, in the table of the signature.
"""

from __future__ import annotations

import re

from bwcompiler.runtime import python_abi as abi
from bwcompiler.runtime.entry.table import LARGE_BYTES, STRIDES

ARENA_SLOTS = 4  # arenas that an executable keeps for its next calls

# Result type and parameters of the functions below; every other external symbol is data.
_FUNCTIONS = {
    "py.PyObject_Vectorcall": "ptr (ptr, ptr, i64, ptr)",
    "py.PyObject_RichCompareBool": "i32 (ptr, ptr, i32)",
    "py.PyTuple_New": "ptr (i64)",
    "py.PyList_New": "ptr (i64)",
    "py.PyDict_New": "ptr ()",
    "py.PyDict_SetItem": "i32 (ptr, ptr, ptr)",
    "py.PyDict_GetItemWithError": "ptr (ptr, ptr)",
    "py.PyObject_GetAttr": "ptr (ptr, ptr)",
    "py.PyErr_Clear": "void ()",
    "py.PyErr_Occurred": "ptr ()",
    "py.PyErr_NoMemory": "ptr ()",
    "py.PyErr_SetString": "void (ptr, ptr)",
    "py.PyEval_SaveThread": "ptr ()",
    "py.PyEval_RestoreThread": "void (ptr)",
    "py.Py_IncRef": "void (ptr)",
    "py.Py_DecRef": "void (ptr)",
    "py.PyLong_AsLongLongAndOverflow": "i64 (ptr, ptr)",
    "py.PyLong_FromLong": "ptr (i64)",
    "py.PyBytes_FromStringAndSize": "ptr (ptr, i64)",
    "py.PyType_GenericAlloc": "ptr (ptr, i64)",
    "np.PyArray_Scalar": "ptr (ptr, ptr, ptr)",
    "np.PyArray_NewCopy": "ptr (ptr, i32)",
    "np.PyArray_NewFromDescr": "ptr (ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)",
    "np.PyDataMem_SetHandler": "ptr (ptr)",
    "mem.take": "ptr (i64)",
    "mem.give": "void (ptr)",
    "c.aligned_alloc": "ptr (i64, i64)",
    "c.free": "void (ptr)",
    "c.memcmp": "i32 (ptr, ptr, i64)",
}

_EXTERNAL = re.compile(r'@"?((?:py|np|mem|c)\.[\w.]+)')


def external_symbols(text: str) -> list[str]:
    """The symbols in `text` that the runtime binds at load, in order of name."""
    return sorted(set(_EXTERNAL.findall(text)))


def declarations(text: str) -> str:
    """Declarations of the external symbols that `text` uses."""
    lines = []
    for name in external_symbols(text):
        if name in _FUNCTIONS:
            result, parameters = _FUNCTIONS[name].split(" ", 1)
            lines.append(f"declare {result} @{name}{parameters} nounwind")
        else:
            lines.append(f"@{name} = external global i8")
    return "\n".join(lines) + "\n"


# The data pointer of an array that fits the specification; null if it does not.  %demands: the flags it must have, and
# whether its strides are specified.  A dtype object other than NumPy's singleton (arrays from pickles have one) will do
# if its number and byte order are the same.
ARRAY_DATA = f"""
define internal ptr @bw.array_data(ptr %object, ptr %spec, i64 %demands) nounwind {{
start:
  %flags = trunc i64 %demands to i32
  %type.at = getelementptr i8, ptr %object, i64 {abi.TYPE}
  %type = load ptr, ptr %type.at
  %is.array = icmp eq ptr %type, @np.ndarray
  br i1 %is.array, label %check.flags, label %mismatch
check.flags:
  %flags.at = getelementptr i8, ptr %object, i64 {abi.ARRAY_FLAGS}
  %flags.has = load i32, ptr %flags.at
  %flags.common = and i32 %flags.has, %flags
  %flags.ok = icmp eq i32 %flags.common, %flags
  br i1 %flags.ok, label %check.descr, label %mismatch
check.descr:
  %descr.at = getelementptr i8, ptr %object, i64 {abi.ARRAY_DESCR}
  %descr = load ptr, ptr %descr.at
  %descr.wanted = load ptr, ptr %spec
  %descr.same = icmp eq ptr %descr, %descr.wanted
  br i1 %descr.same, label %check.rank, label %check.number
check.number:
  %number.at = getelementptr i8, ptr %descr, i64 {abi.DESCR_NUMBER}
  %number = load i32, ptr %number.at
  %number.wanted.at = getelementptr i8, ptr %spec, i64 8
  %number.wanted = load i32, ptr %number.wanted.at
  %number.same = icmp eq i32 %number, %number.wanted
  %order.at = getelementptr i8, ptr %descr, i64 {abi.DESCR_BYTEORDER}
  %order = load i8, ptr %order.at
  %order.wanted.at = getelementptr i8, ptr %descr.wanted, i64 {abi.DESCR_BYTEORDER}
  %order.wanted = load i8, ptr %order.wanted.at
  %order.same = icmp eq i8 %order, %order.wanted
  %equivalent = and i1 %number.same, %order.same
  br i1 %equivalent, label %check.rank, label %mismatch
check.rank:
  %rank.at = getelementptr i8, ptr %object, i64 {abi.ARRAY_RANK}
  %rank = load i32, ptr %rank.at
  %rank.wanted.at = getelementptr i8, ptr %spec, i64 12
  %rank.wanted = load i32, ptr %rank.wanted.at
  %rank.same = icmp eq i32 %rank, %rank.wanted
  br i1 %rank.same, label %shape, label %mismatch
shape:
  %shape.at = getelementptr i8, ptr %object, i64 {abi.ARRAY_SHAPE}
  %extents = load ptr, ptr %shape.at
  %extents.wanted = getelementptr i8, ptr %spec, i64 16
  %count = zext i32 %rank.wanted to i64
  br label %axis
axis:
  %k = phi i64 [ 0, %shape ], [ %k.next, %compare ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %layout, label %compare
compare:
  %extent.at = getelementptr i64, ptr %extents, i64 %k
  %extent = load i64, ptr %extent.at
  %wanted.at = getelementptr i64, ptr %extents.wanted, i64 %k
  %wanted = load i64, ptr %wanted.at
  %extent.same = icmp eq i64 %extent, %wanted
  %k.next = add i64 %k, 1
  br i1 %extent.same, label %axis, label %mismatch
layout:
  %strided = and i64 %demands, {STRIDES}
  %any.layout = icmp eq i64 %strided, 0
  br i1 %any.layout, label %fits, label %strides
strides:
  %strides.at = getelementptr i8, ptr %object, i64 {abi.ARRAY_STRIDES}
  %steps = load ptr, ptr %strides.at
  %steps.wanted = getelementptr i64, ptr %extents.wanted, i64 %count
  br label %step.axis
step.axis:
  %n = phi i64 [ 0, %strides ], [ %n.next, %step.compare ]
  %step.end = icmp eq i64 %n, %count
  br i1 %step.end, label %fits, label %step.compare
step.compare:
  %step.at = getelementptr i64, ptr %steps, i64 %n
  %step = load i64, ptr %step.at
  %step.wanted.at = getelementptr i64, ptr %steps.wanted, i64 %n
  %step.wanted = load i64, ptr %step.wanted.at
  %step.same = icmp eq i64 %step, %step.wanted
  %n.next = add i64 %n, 1
  br i1 %step.same, label %step.axis, label %mismatch
fits:
  %data.at = getelementptr i8, ptr %object, i64 {abi.ARRAY_DATA}
  %data = load ptr, ptr %data.at
  ret ptr %data
mismatch:
  ret ptr null
}}
"""

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

# The same with memory from the pool (`memory_pool.py`), to which the array gives it back when it dies.  Where the user chose a
# handler of memory of their own, it is theirs to give.
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

# A plain static value: the same object, or an equal int, str, bytes or float (bit by bit) of the very same type.
PLAIN_EQUAL = f"""
define internal i1 @bw.plain_equal(ptr %object, ptr %expected) nounwind {{
start:
  %same = icmp eq ptr %object, %expected
  br i1 %same, label %yes, label %types
types:
  %type.at = getelementptr i8, ptr %object, i64 {abi.TYPE}
  %type = load ptr, ptr %type.at
  %expected.type.at = getelementptr i8, ptr %expected, i64 {abi.TYPE}
  %expected.type = load ptr, ptr %expected.type.at
  %same.type = icmp eq ptr %type, %expected.type
  br i1 %same.type, label %kinds, label %no
kinds:
  %is.float = icmp eq ptr %type, @py.PyFloat_Type
  br i1 %is.float, label %floats, label %compare
floats:
  %value.at = getelementptr i8, ptr %object, i64 {abi.NUMBER_VALUE}
  %expected.value.at = getelementptr i8, ptr %expected, i64 {abi.NUMBER_VALUE}
  %value = load i64, ptr %value.at
  %expected.value = load i64, ptr %expected.value.at
  %same.bits = icmp eq i64 %value, %expected.value
  ret i1 %same.bits
compare:
  %answer = call i32 @py.PyObject_RichCompareBool(ptr %object, ptr %expected, i32 2)
  %equal = icmp eq i32 %answer, 1
  ret i1 %equal
yes:
  ret i1 true
no:
  ret i1 false
}}
"""

# An attribute that somebody else keeps alive (an instance's own; a property may make a new object, which is refused), so
# that no reference to it has to be held.  Null if there is none.
ATTRIBUTE = """
define internal ptr @bw.attribute(ptr %object, ptr %name) nounwind {
start:
  %found = call ptr @py.PyObject_GetAttr(ptr %object, ptr %name)
  %missing = icmp eq ptr %found, null
  br i1 %missing, label %none, label %count
none:
  call void @py.PyErr_Clear()
  ret ptr null
count:
  %references = load i32, ptr %found
  %only.ours = icmp eq i32 %references, 1
  call void @py.Py_DecRef(ptr %found)
  %kept = select i1 %only.ours, ptr null, ptr %found
  ret ptr %kept
}
"""

# Are the names of the keyword arguments these, in this order?  Names in source code are interned.
KEYWORDS = f"""
define internal i1 @bw.keywords(ptr %given, ptr %wanted, i64 %count) nounwind {{
start:
  %missing = icmp eq ptr %given, null
  br i1 %missing, label %no, label %sizes
sizes:
  %size.at = getelementptr i8, ptr %given, i64 {abi.CONTAINER_SIZE}
  %size = load i64, ptr %size.at
  %items = getelementptr i8, ptr %given, i64 {abi.TUPLE_ITEMS}
  %same.size = icmp eq i64 %size, %count
  br i1 %same.size, label %head, label %no
head:
  %k = phi i64 [ 0, %sizes ], [ %k.next, %body ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %yes, label %body
body:
  %name.at = getelementptr ptr, ptr %items, i64 %k
  %name = load ptr, ptr %name.at
  %wanted.at = getelementptr ptr, ptr %wanted, i64 %k
  %name.wanted = load ptr, ptr %wanted.at
  %k.next = add i64 %k, 1
  %same = icmp eq ptr %name, %name.wanted
  br i1 %same, label %head, label %no
yes:
  ret i1 true
no:
  ret i1 false
}}
"""

# C-contiguous copies, in %copies, of those of the leaves that are not so or not aligned; null for the others.  False: no
# memory.
COPIES = f"""
define internal i1 @bw.copies(ptr %leaves, i64 %count, ptr %objects, ptr %buffers, ptr %copies) nounwind {{
start:
  %bytes = mul i64 %count, 8
  call void @llvm.memset.p0.i64(ptr %copies, i8 0, i64 %bytes, i1 false)
  br label %head
head:
  %k = phi i64 [ 0, %start ], [ %k.next, %body ], [ %k.next, %copied ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %yes, label %body
body:
  %leaf.at = getelementptr i64, ptr %leaves, i64 %k
  %leaf = load i64, ptr %leaf.at
  %object.at = getelementptr ptr, ptr %objects, i64 %leaf
  %object = load ptr, ptr %object.at
  %flags.at = getelementptr i8, ptr %object, i64 {abi.ARRAY_FLAGS}
  %flags = load i32, ptr %flags.at
  %common = and i32 %flags, {abi.C_CONTIGUOUS | abi.ALIGNED}
  %contiguous = icmp eq i32 %common, {abi.C_CONTIGUOUS | abi.ALIGNED}
  %k.next = add i64 %k, 1
  br i1 %contiguous, label %head, label %copy
copy:
  %new = call ptr @np.PyArray_NewCopy(ptr %object, i32 0)
  %no.memory = icmp eq ptr %new, null
  br i1 %no.memory, label %no, label %copied
copied:
  %copy.at = getelementptr ptr, ptr %copies, i64 %k
  store ptr %new, ptr %copy.at
  %data.at = getelementptr i8, ptr %new, i64 {abi.ARRAY_DATA}
  %data = load ptr, ptr %data.at
  %buffer.at = getelementptr ptr, ptr %buffers, i64 %leaf
  store ptr %data, ptr %buffer.at
  br label %head
yes:
  ret i1 true
no:
  ret i1 false
}}
"""

# Call raise_error(code, record) (item 1 of `self`), unless the program left an exception itself.
RAISE = f"""
@bw.silent = private unnamed_addr constant [47 x i8] c"native code failed, but raise_error() returned\\00"
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
  call void @py.PyErr_SetString(ptr @py.SystemError, ptr @bw.silent)
  br label %drop
drop:
  call void @bw.release(ptr %arguments, i64 2)
  br label %done
done:
  ret void
}}
"""

# Large arenas come from the pool (`memory_pool.py`).  For others the executable has a lock-free list: taken by exchanging a
# slot with null, given back by putting it into an empty slot.
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
