"""`@bw.guards`, which decides whether a call has the form of a table: an interpreter of the guard operations (`table.py`), in LLVM text.

    for op in table.guards:                                        fetch
        object = place(op.source, op.base, op.key)                 source: from.item ... from.itself
        if not check(op, object):                                  dispatch: array, number, ... dict
            return False                                           fail
        note the leaf, or enter the container                      leaf, enter
    return True                                                    pass

The loop is in registers of LLVM: %op is the operation; %hold, %slot and %open are the next free places of %held, %slots and %registers.
What passes a check goes on at one of three blocks: `leaf`, `accept` (nothing to note) or `enter`.
"""

from __future__ import annotations

from bwcompiler.runtime import python_abi as abi
from bwcompiler.runtime.entry.table import GUARD_BYTES, GUARDS, SOURCES
from bwcompiler.runtime.entry.words import field, header, switch, word

_FETCH = f"""
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
"""

# Find %object: where the words from, base and key say (`SOURCES`).  %registers has the vectors, dicts and objects that were entered, the
# first of them the arguments themselves; all other sources are places outside of the arguments.
_SOURCE = f"""\
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
from.member:
  %owner.at = getelementptr ptr, ptr %registers, i64 %base.word
  %owner = load ptr, ptr %owner.at
  br label %attribute.of
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
  br label %attribute.of
attribute.of:
  %attribute.owner = phi ptr [ %owner, %from.member ], [ %outside, %from.attribute ]
  %attribute = call ptr @bw.attribute(ptr %attribute.owner, ptr %key)
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
"""

# What is required of it: one block per entry of `GUARDS`.
_DISPATCH = f"""\
dispatch:
  %object = phi ptr [ %item.object, %from.item ], [ %found, %lookup ], [ %contents, %from.cell ],
                    [ %attribute, %attribute.of ], [ %member, %list.item ], [ %pointed, %from.slot ],
                    [ %outside, %from.itself ]
{field("type", abi.TYPE)}
  %size.at = getelementptr i8, ptr %object, i64 {abi.CONTAINER_SIZE}
  %a.pointer = inttoptr i64 %a to ptr
{switch("%code", {name: number for name, number in GUARDS.items() if name != "end"}, "fail")}
"""

# Leaves: the address of the data goes into %buffers, the object into %objects and, if it stands in a list, a dict or an object, into
# %held.  Numbers are converted into %slot; those from outside of the arguments are copied there, as the name may be rebound during the
# call.
_LEAVES = f"""\
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
  %is.argument = icmp ule i64 %from, {SOURCES["member"]}
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
"""

# Values that were compiled in, and values outside of the arguments that must not have changed.
_EXPECTED = f"""\
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
keys:
  %keys.wanted = getelementptr i8, ptr %table, i64 %b
  %keys.ok = call i1 @bw.keys_in_order(ptr %object, ptr %keys.wanted, i64 %a)
  br i1 %keys.ok, label %accept, label %fail
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
absent:
  %has.attribute = call i32 @py.PyObject_HasAttr(ptr %object, ptr %a.pointer)
  %is.absent = icmp eq i32 %has.attribute, 0
  br i1 %is.absent, label %accept, label %fail
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
"""

# Containers of the required size, tuples also of the required class (that of a named tuple), dicts with their keys in the required order,
# objects of the required class with the required attributes: their items become a register, in which the operations that follow find them.
_CONTAINERS = f"""\
tuple:
  %tuple.class = inttoptr i64 %b to ptr
  %is.tuple = icmp eq ptr %type, %tuple.class
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
  br i1 %is.dict, label %dict.keys, label %fail
dict.keys:
  %dict.wanted = getelementptr i8, ptr %table, i64 %b
  %dict.ok = call i1 @bw.keys_in_order(ptr %object, ptr %dict.wanted, i64 %a)
  br i1 %dict.ok, label %sized, label %fail
instance:
  %is.of.class = icmp eq ptr %type, %a.pointer
  br i1 %is.of.class, label %instance.members, label %fail
instance.members:
{word(6, "in.dict")}
  %names.wanted = getelementptr i8, ptr %table, i64 %b
  %names.ok = call i1 @bw.members(ptr %object, ptr %names.wanted, i64 %in.dict, i64 %number.of.leaf)
  br i1 %names.ok, label %enter, label %fail
sized:
  %inner = phi ptr [ %tuple.base, %tuple.items ], [ %list.base, %list.items ], [ %object, %dict.keys ]
  %item.count = load i64, ptr %size.at
  %size.ok = icmp eq i64 %item.count, %a
  br i1 %size.ok, label %enter, label %fail
enter:
  %entered = phi ptr [ %inner, %sized ], [ %object, %instance.members ]
  store ptr %entered, ptr %open
  %open.next = getelementptr ptr, ptr %open, i64 1
  br label %fetch
"""

# No guard has side effects, so there is nothing to undo.
_ANSWER = """\
pass:
  ret i1 true
fail:
  ret i1 false
}
"""

GUARDS_TEXT = "".join((_FETCH, _SOURCE, _DISPATCH, _LEAVES, _EXPECTED, _CONTAINERS, _ANSWER))
