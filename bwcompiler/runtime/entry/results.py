"""LLVM text of the results of a call: new arrays before the program, NumPy scalars and the result tree after it."""

from __future__ import annotations

from bwcompiler.runtime import python_abi as abi
from bwcompiler.runtime.entry.table import PACKING, RESULTS, STEP_BYTES
from bwcompiler.runtime.entry.words import field, header, switch, word

# The head of a loop over the result operations %op, with the number %k and the %code of each.  The code after it runs for each,
# and ends in `br label %head` at %next; after the last one, control is at %pass.
_EACH_RESULT = f"""  %first.op = getelementptr i8, ptr %table, i64 %results
  br label %head
head:
  %k = phi i64 [ 0, %start ], [ %k.next, %next ]
  %op = phi ptr [ %first.op, %start ], [ %op.next, %next ]
  %op.next = getelementptr i8, ptr %op, i64 {STEP_BYTES}
  %k.next = add i64 %k, 1
  %end = icmp eq i64 %k, %result_count
  br i1 %end, label %pass, label %body
body:
  %code = load i64, ptr %op"""

# References to the results, or new arrays, into %owned; pointers to their data into %buffers.  False: no memory.
RESULTS_TEXT = f"""
define internal i1 @bw.results(ptr %table, ptr %buffers, ptr %objects, ptr %owned, ptr %slots) nounwind {{
start:
{header("results")}
{header("result_count")}
{header("leaf_count")}
{header("captured_count")}
  %before = add i64 %leaf_count, %captured_count
{_EACH_RESULT}
{word(1, "a")}
  %spec = getelementptr i8, ptr %table, i64 %a
{switch("%code", {name: RESULTS[name] for name in ("array", "large_array", "argument")}, "scalar")}
array:
  %new.small = call ptr @bw.new_array(ptr %spec)
  br label %array.made
large_array:
  %new.large = call ptr @bw.new_large_array(ptr %spec)
  br label %array.made
array.made:
  %new = phi ptr [ %new.small, %array ], [ %new.large, %large_array ]
  %no.memory = icmp eq ptr %new, null
  br i1 %no.memory, label %fail, label %array.data
array.data:
{field("new.data", abi.ARRAY_DATA, "%new")}
  br label %next
argument:
  %same.at = getelementptr ptr, ptr %objects, i64 %a
  %same = load ptr, ptr %same.at
  call void @py.Py_IncRef(ptr %same)
  %same.data.at = getelementptr ptr, ptr %buffers, i64 %a
  %same.data = load ptr, ptr %same.data.at
  br label %next
scalar:
  %slot.offset = mul i64 %k, 16
  %slot = getelementptr i8, ptr %slots, i64 %slot.offset
  br label %next
next:
  %object = phi ptr [ %new, %array.data ], [ %same, %argument ], [ null, %scalar ]
  %data = phi ptr [ %new.data, %array.data ], [ %same.data, %argument ], [ %slot, %scalar ]
  %object.at = getelementptr ptr, ptr %owned, i64 %k
  store ptr %object, ptr %object.at
  %buffer = add i64 %before, %k
  %buffer.at = getelementptr ptr, ptr %buffers, i64 %buffer
  store ptr %data, ptr %buffer.at
  br label %head
pass:
  ret i1 true
fail:
  ret i1 false
}}
"""

# A NumPy scalar for every such result, allocated as PyArray_Scalar does it.  False: no memory.
SCALARS_TEXT = f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define internal i1 @bw.scalars(ptr %table, ptr %owned, ptr %slots) nounwind {{
start:
{header("results")}
{header("result_count")}
{_EACH_RESULT}
{word(1, "a", "ptr")}
{word(2, "b")}
  %slot.offset = mul i64 %k, 16
  %slot = getelementptr i8, ptr %slots, i64 %slot.offset
{switch("%code", {"scalar": RESULTS["scalar"], "by.numpy": RESULTS["numpy_scalar"]}, "next")}
scalar:
  %new = call ptr @py.PyType_GenericAlloc(ptr %a, i64 0)
  %no.memory = icmp eq ptr %new, null
  br i1 %no.memory, label %fail, label %fill
fill:
  %value.at = getelementptr i8, ptr %new, i64 {abi.NUMBER_VALUE}
  %is.double = icmp eq i64 %b, 8
  br i1 %is.double, label %fill.8, label %fill.any
fill.8:
  %value = load i64, ptr %slot
  store i64 %value, ptr %value.at
  br label %own
fill.any:
  call void @llvm.memcpy.p0.p0.i64(ptr %value.at, ptr %slot, i64 %b, i1 false)
  br label %own
by.numpy:
  %made = call ptr @np.PyArray_Scalar(ptr %slot, ptr %a, ptr null)
  %made.bad = icmp eq ptr %made, null
  br i1 %made.bad, label %fail, label %own
own:
  %object = phi ptr [ %new, %fill.8 ], [ %new, %fill.any ], [ %made, %by.numpy ]
  %object.at = getelementptr ptr, ptr %owned, i64 %k
  store ptr %object, ptr %object.at
  br label %next
next:
  br label %head
pass:
  ret i1 true
fail:
  ret i1 false
}}
"""


def _set_children(kind: str, keys: str, function: str) -> str:
    """A loop that sets the first %a children in a new dict or object, under the keys in an array; its head is at %<kind>.head."""
    return f"""{kind}.head:
  %{kind}.k = phi i64 [ 0, %{kind} ], [ %{kind}.k.next, %{kind}.set ]
  %{kind}.k.next = add i64 %{kind}.k, 1
  %{kind}.end = icmp eq i64 %{kind}.k, %a
  br i1 %{kind}.end, label %{kind}.done, label %{kind}.set
{kind}.set:
  %{kind}.key.at = getelementptr ptr, ptr {keys}, i64 %{kind}.k
  %{kind}.key = load ptr, ptr %{kind}.key.at
  %{kind}.child.at = getelementptr ptr, ptr %children, i64 %{kind}.k
  %{kind}.child = load ptr, ptr %{kind}.child.at
  %{kind}.status = call i32 @py.{function}(ptr %{kind}.new, ptr %{kind}.key, ptr %{kind}.child)
  %{kind}.is.set = icmp eq i32 %{kind}.status, 0
  br i1 %{kind}.is.set, label %{kind}.head, label %{kind}.fail
{kind}.fail:
  call void @py.Py_DecRef(ptr %{kind}.new)
  br label %fail
{kind}.done:
  call void @bw.release(ptr %children, i64 %a)
  br label %push"""


# A stack machine that builds the result tree and moves the references of %owned into it.  Null: no memory, or an
# exception of the class of a named tuple or an object; then the objects on the stack have been dropped, and %owned keeps the others.
PACK_TEXT = f"""
define internal ptr @bw.pack(ptr %table, ptr %owned, ptr %stack) nounwind {{
start:
{header("packing")}
  %first.op = getelementptr i8, ptr %table, i64 %packing
  br label %fetch
fetch:
  %op = phi ptr [ %first.op, %start ], [ %op.next, %push ]
  %top = phi i64 [ 0, %start ], [ %top.next, %push ]
  %code = load i64, ptr %op
  %op.next = getelementptr i8, ptr %op, i64 {STEP_BYTES}
  %finished = icmp eq i64 %code, {PACKING["end"]}
  br i1 %finished, label %done, label %dispatch
dispatch:
{word(1, "a")}
{word(2, "b")}
  %below = sub i64 %top, %a
  %children = getelementptr ptr, ptr %stack, i64 %below
  %children.bytes = mul i64 %a, 8
{switch("%code", {name: number for name, number in PACKING.items() if name != "end"}, "fail")}
result:
  %owned.at = getelementptr ptr, ptr %owned, i64 %a
  %owned.object = load ptr, ptr %owned.at
  store ptr null, ptr %owned.at
  br label %push
none:
  call void @py.Py_IncRef(ptr @py._Py_NoneStruct)
  br label %push
tuple:
  %tuple.new = call ptr @py.PyTuple_New(i64 %a)
  %tuple.items = getelementptr i8, ptr %tuple.new, i64 {abi.TUPLE_ITEMS}
  %tuple.bad = icmp eq ptr %tuple.new, null
  br i1 %tuple.bad, label %fail, label %fill
list:
  %list.new = call ptr @py.PyList_New(i64 %a)
  %list.bad = icmp eq ptr %list.new, null
  br i1 %list.bad, label %fail, label %list.fill
list.fill:
{field("list.items", abi.LIST_ITEMS, "%list.new")}
  br label %fill
fill:
  %filled = phi ptr [ %tuple.new, %tuple ], [ %list.new, %list.fill ]
  %items = phi ptr [ %tuple.items, %tuple ], [ %list.items, %list.fill ]
  call void @llvm.memcpy.p0.p0.i64(ptr %items, ptr %children, i64 %children.bytes, i1 false)
  br label %push
dict:
  %dict.new = call ptr @py.PyDict_New()
  %dict.bad = icmp eq ptr %dict.new, null
  %keys = getelementptr i8, ptr %table, i64 %b
  br i1 %dict.bad, label %fail, label %dict.head
{_set_children("dict", "%keys", "PyDict_SetItem")}
named:
  %named.class = inttoptr i64 %b to ptr
  %named.new = call ptr @py.PyObject_Vectorcall(ptr %named.class, ptr %children, i64 %a, ptr null)
  %named.bad = icmp eq ptr %named.new, null
  br i1 %named.bad, label %fail, label %named.done
named.done:
  call void @bw.release(ptr %children, i64 %a)
  br label %push
instance:
  %instance.spec = getelementptr i8, ptr %table, i64 %b
  %instance.class = load ptr, ptr %instance.spec
  %instance.new = call ptr @py.object_new(ptr %instance.class, ptr @py.empty_tuple, ptr null)
  %instance.bad = icmp eq ptr %instance.new, null
  %names = getelementptr ptr, ptr %instance.spec, i64 1
  br i1 %instance.bad, label %fail, label %instance.head
{_set_children("instance", "%names", "PyObject_GenericSetAttr")}
constant:
  %constant.object = inttoptr i64 %b to ptr
  call void @py.Py_IncRef(ptr %constant.object)
  br label %push
push:
  %object = phi ptr [ %owned.object, %result ], [ @py._Py_NoneStruct, %none ], [ %filled, %fill ], [ %dict.new, %dict.done ],
                    [ %named.new, %named.done ], [ %instance.new, %instance.done ], [ %constant.object, %constant ]
  %place = phi i64 [ %top, %result ], [ %top, %none ], [ %below, %fill ], [ %below, %dict.done ], [ %below, %named.done ],
                 [ %below, %instance.done ], [ %top, %constant ]
  %place.at = getelementptr ptr, ptr %stack, i64 %place
  store ptr %object, ptr %place.at
  %top.next = add i64 %place, 1
  br label %fetch
done:
  %answer = load ptr, ptr %stack
  ret ptr %answer
fail:
  call void @bw.release(ptr %stack, i64 %top)
  ret ptr null
}}
"""
