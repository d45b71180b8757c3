"""The guards of the native entry, as functions in LLVM text: checks of arrays, keywords, attributes and static values.

An array *specification* is {ptr descr, i32 type number, i32 rank, [rank x i64] shape}, in the table of the signature; strides follow
the shape if they are required.
"""

from __future__ import annotations

import sys

from bwcompiler.runtime import python_abi as abi
from bwcompiler.runtime.entry.table import STRIDES
from bwcompiler.runtime.entry.words import field


def _all_same(name: str, type_: str, found: str, wanted: str, count: str, start: str, same: str, other: str) -> str:
    """A loop from label `name` on, which is reached from `start`: control is then at `same` if two arrays are, else at `other`."""
    return f"""{name}:
  %{name}.k = phi i64 [ 0, %{start} ], [ %{name}.next, %{name}.compare ]
  %{name}.end = icmp eq i64 %{name}.k, {count}
  br i1 %{name}.end, label %{same}, label %{name}.compare
{name}.compare:
  %{name}.at = getelementptr {type_}, ptr {found}, i64 %{name}.k
  %{name}.found = load {type_}, ptr %{name}.at
  %{name}.wanted.at = getelementptr {type_}, ptr {wanted}, i64 %{name}.k
  %{name}.wanted = load {type_}, ptr %{name}.wanted.at
  %{name}.same = icmp eq {type_} %{name}.found, %{name}.wanted
  %{name}.next = add i64 %{name}.k, 1
  br i1 %{name}.same, label %{name}, label %{other}"""


# The data pointer of an array that fits the specification; null if it does not.  %demands: the required flags, and
# whether strides are specified.  A dtype object other than NumPy's singleton (arrays from pickles have one) is accepted
# if its type number and byte order are the same.
ARRAY_DATA = f"""
define internal ptr @bw.array_data(ptr %object, ptr %spec, i64 %demands) nounwind {{
start:
  %flags = trunc i64 %demands to i32
{field("type", abi.TYPE)}
  %is.array = icmp eq ptr %type, @np.ndarray
  br i1 %is.array, label %check.flags, label %mismatch
check.flags:
  %flags.at = getelementptr i8, ptr %object, i64 {abi.ARRAY_FLAGS}
  %flags.has = load i32, ptr %flags.at
  %flags.common = and i32 %flags.has, %flags
  %flags.ok = icmp eq i32 %flags.common, %flags
  br i1 %flags.ok, label %check.descr, label %mismatch
check.descr:
{field("descr", abi.ARRAY_DESCR)}
  %descr.wanted = load ptr, ptr %spec
  %descr.same = icmp eq ptr %descr, %descr.wanted
  br i1 %descr.same, label %check.rank, label %check.number
check.number:
{field("number", abi.DESCR_NUMBER, "%descr", "i32")}
  %number.wanted.at = getelementptr i8, ptr %spec, i64 8
  %number.wanted = load i32, ptr %number.wanted.at
  %number.same = icmp eq i32 %number, %number.wanted
{field("order", abi.DESCR_BYTEORDER, "%descr", "i8")}
{field("order.wanted", abi.DESCR_BYTEORDER, "%descr.wanted", "i8")}
  %order.same = icmp eq i8 %order, %order.wanted
  %equivalent = and i1 %number.same, %order.same
  br i1 %equivalent, label %check.rank, label %mismatch
check.rank:
{field("rank", abi.ARRAY_RANK, type_="i32")}
  %rank.wanted.at = getelementptr i8, ptr %spec, i64 12
  %rank.wanted = load i32, ptr %rank.wanted.at
  %rank.same = icmp eq i32 %rank, %rank.wanted
  br i1 %rank.same, label %shape, label %mismatch
shape:
  %shape.at = getelementptr i8, ptr %object, i64 {abi.ARRAY_SHAPE}
  %extents = load ptr, ptr %shape.at
  %extents.wanted = getelementptr i8, ptr %spec, i64 16
  %count = zext i32 %rank.wanted to i64
  br label %extent
{_all_same("extent", "i64", "%extents", "%extents.wanted", "%count", "shape", "layout", "mismatch")}
layout:
  %strided = and i64 %demands, {STRIDES}
  %any.layout = icmp eq i64 %strided, 0
  br i1 %any.layout, label %fits, label %strides
strides:
  %strides.at = getelementptr i8, ptr %object, i64 {abi.ARRAY_STRIDES}
  %steps = load ptr, ptr %strides.at
  %steps.wanted = getelementptr i64, ptr %extents.wanted, i64 %count
  br label %step
{_all_same("step", "i64", "%steps", "%steps.wanted", "%count", "strides", "fits", "mismatch")}
fits:
{field("data", abi.ARRAY_DATA)}
  ret ptr %data
mismatch:
  ret ptr null
}}
"""

# Whether the keyword arguments have these names, in this order.  Names in source code are interned.
KEYWORDS = f"""
define internal i1 @bw.keywords(ptr %given, ptr %wanted, i64 %count) nounwind {{
start:
  %missing = icmp eq ptr %given, null
  br i1 %missing, label %no, label %sizes
sizes:
{field("size", abi.CONTAINER_SIZE, "%given", "i64")}
  %items = getelementptr i8, ptr %given, i64 {abi.TUPLE_ITEMS}
  %same.size = icmp eq i64 %size, %count
  br i1 %same.size, label %name, label %no
{_all_same("name", "ptr", "%items", "%wanted", "%count", "sizes", "yes", "no")}
yes:
  ret i1 true
no:
  ret i1 false
}}
"""

# An attribute that another object keeps alive, so that no reference to it has to be held (a new object made by a property is
# refused).  Null if there is none.
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

# A plain static value: the same object, or an equal int, str, bytes or float (bit by bit) of the very same type.
PLAIN_EQUAL = f"""
define internal i1 @bw.plain_equal(ptr %object, ptr %expected) nounwind {{
start:
  %same = icmp eq ptr %object, %expected
  br i1 %same, label %yes, label %types
types:
{field("type", abi.TYPE)}
{field("expected.type", abi.TYPE, "%expected")}
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

# A dict with these keys and no others, in this order: functions may go over its items, so a dict with another order is another argument.
KEYS_IN_ORDER = """
define internal i1 @bw.keys_in_order(ptr %dict, ptr %keys, i64 %count) nounwind {
start:
  %position = alloca i64
  %key.found = alloca ptr
  store i64 0, ptr %position
  br label %next
next:
  %k = phi i64 [ 0, %start ], [ %k.next, %compare ]
  %k.next = add i64 %k, 1
  %status = call i32 @py.PyDict_Next(ptr %dict, ptr %position, ptr %key.found, ptr null)
  %has.next = icmp ne i32 %status, 0
  %is.wanted = icmp slt i64 %k, %count
  %go.on = and i1 %has.next, %is.wanted
  br i1 %go.on, label %compare, label %end
compare:
  %key = load ptr, ptr %key.found
  %wanted.at = getelementptr ptr, ptr %keys, i64 %k
  %wanted = load ptr, ptr %wanted.at
  %same = call i1 @bw.plain_equal(ptr %key, ptr %wanted)
  br i1 %same, label %next, label %no
end:
  %all.found = icmp eq i1 %has.next, %is.wanted
  ret i1 %all.found
no:
  ret i1 false
}
"""

# The collector runs finalizers and lets other threads run, while guards have pointers that nobody holds.  Before 3.12 any new object may
# start it; later, only Python code does.
_PAUSE, _RESUME = ("""\
  %collects = call i32 @py.PyGC_Disable()""", """\
  %paused = icmp ne i32 %collects, 0
  br i1 %paused, label %resume, label %opened
resume:
  %resumed = call i32 @py.PyGC_Enable()
  br label %opened""") if sys.version_info < (3, 12) else ("", "  br label %opened")

# Whether the dict of an object has these keys and no others; the last of them, %ordered in number, in this order.  -1 keys: it has no dict.
# The object keeps its dict (which is made here if nobody has asked for it yet).  Keys are compared by address, as names of attributes are
# interned; so no code of the user's runs.
MEMBERS = f"""
define internal i1 @bw.members(ptr %object, ptr %names, i64 %count, i64 %ordered) nounwind {{
start:
  %position = alloca i64
  %key.found = alloca ptr
  store i64 0, ptr %position
  %without.dict = icmp slt i64 %count, 0
  br i1 %without.dict, label %yes, label %open
open:
{_PAUSE}
  %dict = call ptr @py.PyObject_GenericGetDict(ptr %object, ptr null)
{_RESUME}
opened:
  %no.dict = icmp eq ptr %dict, null
  br i1 %no.dict, label %failed, label %kind
failed:
  call void @py.PyErr_Clear()
  ret i1 false
kind:
  call void @py.Py_DecRef(ptr %dict)
{field("type", abi.TYPE, "%dict")}
  %is.dict = icmp eq ptr %type, @py.PyDict_Type
  br i1 %is.dict, label %size.of, label %no
size.of:
{field("size", abi.CONTAINER_SIZE, "%dict", "i64")}
  %same.size = icmp eq i64 %size, %count
  %first.ordered = sub i64 %count, %ordered
  br i1 %same.size, label %next, label %no
next:
  %k = phi i64 [ 0, %size.of ], [ %k.next, %unordered ], [ %k.next, %in.order ]
  %last = phi i64 [ -1, %size.of ], [ %last, %unordered ], [ %place, %in.order ]
  %k.next = add i64 %k, 1
  %status = call i32 @py.PyDict_Next(ptr %dict, ptr %position, ptr %key.found, ptr null)
  %has.next = icmp ne i32 %status, 0
  br i1 %has.next, label %look, label %yes
look:
  %key = load ptr, ptr %key.found
  br label %try
try:
  %tried = phi i64 [ 0, %look ], [ %tried.next, %other ]
  %place.wraps = add i64 %k, %tried
  %is.beyond = icmp uge i64 %place.wraps, %count
  %place.wrapped = sub i64 %place.wraps, %count
  %place = select i1 %is.beyond, i64 %place.wrapped, i64 %place.wraps
  %wanted.at = getelementptr ptr, ptr %names, i64 %place
  %wanted = load ptr, ptr %wanted.at
  %same = icmp eq ptr %key, %wanted
  br i1 %same, label %found, label %other
other:
  %tried.next = add i64 %tried, 1
  %all.tried = icmp eq i64 %tried.next, %count
  br i1 %all.tried, label %no, label %try
found:
  %any.order = icmp ult i64 %place, %first.ordered
  br i1 %any.order, label %unordered, label %ordered.next
unordered:
  br label %next
ordered.next:
  %goes.on = icmp sgt i64 %place, %last
  br i1 %goes.on, label %in.order, label %no
in.order:
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}}
"""
