"""From the leaves of a call to its buffers, as functions of the native entry in LLVM text: the memory ranges of strided arrays,
contiguous copies of these, and whether buffers share memory (a buffer that is written to must not overlap another one).
"""

from __future__ import annotations

from bwcompiler.runtime import python_abi as abi
from bwcompiler.runtime.entry.words import field


def _each_without(flags: int) -> str:
    """The head of a loop over %count leaves.  The code after it runs for each array, %object, that lacks one of these flags, and ends
    in `br label %next`; after the last one, control is at %done."""
    return f"""  br label %head
head:
  %k = phi i64 [ 0, %start ], [ %k.next, %next ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %done, label %body
body:
  %leaf.at = getelementptr i64, ptr %leaves, i64 %k
  %leaf = load i64, ptr %leaf.at
  %object.at = getelementptr ptr, ptr %objects, i64 %leaf
  %object = load ptr, ptr %object.at
{field("flags", abi.ARRAY_FLAGS, type_="i32")}
  %common = and i32 %flags, {flags}
  %has.all = icmp eq i32 %common, {flags}
  br i1 %has.all, label %next, label %work
next:
  %k.next = add i64 %k, 1
  br label %head
work:"""


# For leaves that are not C-contiguous arrays: the start and length of the memory range, in place of data pointer and size.
REACHES = f"""
define internal void @bw.reaches(ptr %leaves, i64 %count, ptr %objects, ptr %lows, ptr %spans) nounwind {{
start:
{_each_without(abi.C_CONTIGUOUS)}
  %span.at = getelementptr i64, ptr %spans, i64 %leaf
  %bytes = load i64, ptr %span.at
  %empty = icmp eq i64 %bytes, 0
  br i1 %empty, label %next, label %axes
axes:
  %low.at = getelementptr i64, ptr %lows, i64 %leaf
  %data = load i64, ptr %low.at
  %rank.at = getelementptr i8, ptr %object, i64 {abi.ARRAY_RANK}
  %rank.half = load i32, ptr %rank.at
  %rank = zext i32 %rank.half to i64
  %shape.at = getelementptr i8, ptr %object, i64 {abi.ARRAY_SHAPE}
  %extents = load ptr, ptr %shape.at
{field("strides", abi.ARRAY_STRIDES)}
  br label %axis
axis:
  %n = phi i64 [ 0, %axes ], [ %n.next, %step ]
  %low = phi i64 [ %data, %axes ], [ %low.next, %step ]
  %item = phi i64 [ %bytes, %axes ], [ %item.next, %step ]
  %reach = phi i64 [ 0, %axes ], [ %reach.next, %step ]
  %last = icmp eq i64 %n, %rank
  br i1 %last, label %known, label %step
step:
  %extent.at = getelementptr i64, ptr %extents, i64 %n
  %extent = load i64, ptr %extent.at
  %stride.at = getelementptr i64, ptr %strides, i64 %n
  %stride = load i64, ptr %stride.at
  %steps = sub i64 %extent, 1
  %distance = mul i64 %stride, %steps
  %backwards = icmp slt i64 %distance, 0
  %below = select i1 %backwards, i64 %distance, i64 0
  %length = call i64 @llvm.abs.i64(i64 %distance, i1 false)
  %low.next = add i64 %low, %below
  %item.next = udiv i64 %item, %extent
  %reach.next = add i64 %reach, %length
  %n.next = add i64 %n, 1
  br label %axis
known:
  %span = add i64 %reach, %item
  store i64 %low, ptr %low.at
  store i64 %span, ptr %span.at
  br label %next
done:
  ret void
}}
declare i64 @llvm.abs.i64(i64, i1)
"""

# C-contiguous copies, in %copies, of the leaves that are not contiguous or not aligned; null for the others.  False: no
# memory.
COPIES = f"""
define internal i1 @bw.copies(ptr %leaves, i64 %count, ptr %objects, ptr %buffers, ptr %copies) nounwind {{
start:
  %bytes = mul i64 %count, 8
  call void @llvm.memset.p0.i64(ptr %copies, i8 0, i64 %bytes, i1 false)
{_each_without(abi.C_CONTIGUOUS | abi.ALIGNED)}
  %new = call ptr @np.PyArray_NewCopy(ptr %object, i32 0)
  %no.memory = icmp eq ptr %new, null
  br i1 %no.memory, label %no, label %copied
copied:
  %copy.at = getelementptr ptr, ptr %copies, i64 %k
  store ptr %new, ptr %copy.at
{field("data", abi.ARRAY_DATA, "%new")}
  %buffer.at = getelementptr ptr, ptr %buffers, i64 %leaf
  store ptr %data, ptr %buffer.at
  br label %next
done:
  ret i1 true
no:
  ret i1 false
}}
"""

# Whether buffer `self` shares a byte with another one.  Without branches, so that it is vectorised: there may be hundreds of buffers.
OVERLAPS = """
define internal i1 @bw.overlaps(ptr %buffers, ptr %sizes, i64 %count, i64 %self) nounwind {
start:
  %self.at = getelementptr i64, ptr %buffers, i64 %self
  %low = load i64, ptr %self.at
  %self.size.at = getelementptr i64, ptr %sizes, i64 %self
  %self.size = load i64, ptr %self.size.at
  %high = add i64 %low, %self.size
  br label %body
body:
  %k = phi i64 [ 0, %start ], [ %k.next, %body ]
  %found = phi i1 [ false, %start ], [ %found.next, %body ]
  %at = getelementptr i64, ptr %buffers, i64 %k
  %other.low = load i64, ptr %at
  %size.at = getelementptr i64, ptr %sizes, i64 %k
  %size = load i64, ptr %size.at
  %other.high = add i64 %other.low, %size
  %below = icmp ult i64 %other.low, %high
  %above = icmp ult i64 %low, %other.high
  %filled = icmp ne i64 %size, 0
  %other = icmp ne i64 %k, %self
  %meets = and i1 %below, %above
  %counts = and i1 %filled, %other
  %overlap = and i1 %meets, %counts
  %found.next = or i1 %found, %overlap
  %k.next = add i64 %k, 1
  %more = icmp ult i64 %k.next, %count
  br i1 %more, label %body, label %done
done:
  ret i1 %found.next
}
"""
