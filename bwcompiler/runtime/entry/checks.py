"""What the guards of the native entry ask of objects, as functions in LLVM text: of arrays, keywords, attributes, static values.

An array *specification* is {ptr descr, i32 type number, i32 rank, [rank x i64] shape}, in the table of the signature; strides follow
the shape where they are asked for.
"""

from __future__ import annotations

from bwcompiler.runtime import python_abi as abi
from bwcompiler.runtime.entry.table import STRIDES

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
