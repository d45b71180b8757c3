"""Checks of indices that are data, as functions of a program: negative ones are wrapped, those out of range raise."""

from __future__ import annotations

from bwcompiler.ir.contracts.program_interface import INDEX_ERROR
from bwcompiler.ir.op import Value

_CHECKED = 16                  # indices that are checked as one vector
DECLARE_LAST = f"declare i64 @llvm.vector.reduce.smax.v{_CHECKED}i64(<{_CHECKED} x i64>)"


def _index_error_text(extent: int | str) -> str:
    """Return INDEX_ERROR for the index %found."""
    return f"""  %r1 = getelementptr i64, ptr %record, i64 1
  %r2 = getelementptr i64, ptr %record, i64 2
  store i64 %number, ptr %record
  store i64 %found, ptr %r1
  store i64 {extent}, ptr %r2
  ret i32 {INDEX_ERROR}
"""


def _wrapped_text(type_: str, bad: str, index: str, places: str, extents: str, zero: str, at: str) -> str:
    """Wrap negative indices (one, or a vector), and record the position of one out of range; `at` is a suffix of registers."""
    flags = type_.replace("i64", "i1")
    return f"""  %from{at} = getelementptr i64, ptr %in, i64 {index}
  %v{at} = load {type_}, ptr %from{at}, align 8
  %negative{at} = icmp slt {type_} %v{at}, {zero}
  %up{at} = add {type_} %v{at}, {extents}
  %w{at} = select {flags} %negative{at}, {type_} %up{at}, {type_} %v{at}
  %to{at} = getelementptr i64, ptr %out, i64 {index}
  store {type_} %w{at}, ptr %to{at}, align 8
  %fine{at} = icmp ult {type_} %w{at}, {extents}
  {bad}.next = select {flags} %fine{at}, {type_} {bad}, {type_} {places}
"""


def check_index_text(name: str, value: Value) -> str:
    """`i32 name(in, out, record, number, count)`: wrap negative indices; INDEX_ERROR if one is out of range.

    An extent that depends on loop indices is the last argument.
    """
    extent, extents, spread = value.attrs["extent"], "", ""
    parameters = "ptr noalias readonly %in, ptr noalias %out, ptr %record, i64 %number, i64 %count"
    vectors = f"<{_CHECKED} x i64>"
    if isinstance(extent, int):
        extents = f"splat (i64 {extent})"
    else:
        extent, extents, parameters = "%extent", "%extents", f"{parameters}, i64 %extent"
        spread = f"""  %one = insertelement {vectors} poison, i64 %extent, i64 0
  %extents = shufflevector {vectors} %one, {vectors} poison, <{_CHECKED} x i32> zeroinitializer
"""
    in_vectors = _wrapped_text(vectors, "%bads", "%i", "%places", extents, "zeroinitializer", ".vector")
    one_by_one = _wrapped_text("i64", "%bad", "%j", "%j", str(extent), "0", ".number")
    steps = ", ".join([f"i64 {k}" for k in range(_CHECKED)])
    return f"""define internal i32 @{name}({parameters}) #1 {{
entry:
{spread}  %whole = and i64 %count, {-_CHECKED}
  br label %vectors
vectors:
  %i = phi i64 [ 0, %entry ], [ %i.next, %vector ]
  %bads = phi {vectors} [ splat (i64 -1), %entry ], [ %bads.next, %vector ]
  %places = phi {vectors} [ <{steps}>, %entry ], [ %places.next, %vector ]
  %more = icmp slt i64 %i, %whole
  br i1 %more, label %vector, label %rest
vector:
{in_vectors}  %i.next = add nuw nsw i64 %i, {_CHECKED}
  %places.next = add nuw nsw {vectors} %places, splat (i64 {_CHECKED})
  br label %vectors
rest:
  %last = call i64 @llvm.vector.reduce.smax.v{_CHECKED}i64({vectors} %bads)
  br label %numbers
numbers:
  %j = phi i64 [ %whole, %rest ], [ %j.next, %single ]
  %bad = phi i64 [ %last, %rest ], [ %bad.next, %single ]
  %again = icmp slt i64 %j, %count
  br i1 %again, label %single, label %exit
single:
{one_by_one}  %j.next = add nuw nsw i64 %j, 1
  br label %numbers
exit:
  %ok = icmp slt i64 %bad, 0
  br i1 %ok, label %good, label %fail
good:
  ret i32 0
fail:
  %at = getelementptr i64, ptr %in, i64 %bad
  %found = load i64, ptr %at, align 8
{_index_error_text(extent)}}}
"""


def check_range_text(name: str, extent: int) -> str:
    """`i32 name(largest, out, record, number)`: INDEX_ERROR if the largest index, counted from the start, is not below the extent."""
    return f"""define internal i32 @{name}(ptr noalias readonly %largest, ptr %out, ptr %record, i64 %number) #1 {{
  %index = load i64, ptr %largest, align 8
  %good = icmp ult i64 %index, {extent}
  br i1 %good, label %done, label %fail
done:
  ret i32 0
fail:
  %negative = icmp slt i64 %index, 0
  %down = sub i64 %index, {extent}
  %found = select i1 %negative, i64 %down, i64 %index
{_index_error_text(extent)}}}
"""
