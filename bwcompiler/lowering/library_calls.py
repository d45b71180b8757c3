"""Calls into libraries: matrix products through BLAS; and the check that makes an index array safe to use."""

from __future__ import annotations

from typing import NamedTuple

from bwcompiler.ir.extent import element_count
from bwcompiler.ir.op import Value
from bwcompiler.lowering.llvm_scalars import memory_type

INDEX_ERROR = 1                # status code of an index out of range; record: {number of the check, index, axis extent}
CALLBACK_ERROR = 2


class BlasSymbols(NamedTuple):
    """cblas names by dtype, and the LLVM type of their integers."""

    gemm: dict[str, str]
    integer: str


def gemm_calls(value: Value, operands: list[tuple[str, bool]], result: str, blas: BlasSymbols, prefix: str) -> tuple[list[str], str]:
    """Row-major C = A B per batch element: instruction lines, and the declaration of the routine."""
    (a, a_transposed), (b, b_transposed) = operands
    *batch, m, n = value.shape
    k = value.operands[0].shape[-1]
    type_ = memory_type(value.dtype)
    integer, name = blas.integer, blas.gemm[value.dtype.name]
    count = element_count(batch)
    if 0 in (m, n, count):
        return [], ""
    if k == 0:
        declare = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
        return [f"  call void @llvm.memset.p0.i64(ptr {result}, i8 0, i64 {value.type.nbytes}, i1 false)"], declare
    size = value.dtype.itemsize
    lines: list[str] = []

    def call(pa: str, pb: str, pc: str) -> str:
        arguments = [
            "i32 101", f"i32 {112 if a_transposed else 111}", f"i32 {112 if b_transposed else 111}", f"{integer} {m}", f"{integer} {n}",
            f"{integer} {k}", f"{type_} 1.0", f"ptr {pa}", f"{integer} {m if a_transposed else k}", f"ptr {pb}",
            f"{integer} {k if b_transposed else n}", f"{type_} 0.0", f"ptr {pc}", f"{integer} {n}"]
        return f"  call void @{name}({', '.join(arguments)})"

    if count == 1:
        lines.append(call(a, b, result))
    else:
        p = f"%{prefix}"
        lines += [f"  br label {p}.pre", f"{prefix}.pre:", f"  br label {p}.head", f"{prefix}.head:",
                  f"  {p}.i = phi i64 [ 0, {p}.pre ], [ {p}.n, {p}.body ]", f"  {p}.c = icmp slt i64 {p}.i, {count}",
                  f"  br i1 {p}.c, label {p}.body, label {p}.exit", f"{prefix}.body:"]
        for letter, pointer, elements in (("a", a, m * k), ("b", b, k * n), ("o", result, m * n)):
            lines += [f"  {p}.{letter}s = mul i64 {p}.i, {elements * size}",
                      f"  {p}.{letter} = getelementptr i8, ptr {pointer}, i64 {p}.{letter}s"]
        lines += [call(f"{p}.a", f"{p}.b", f"{p}.o"), f"  {p}.n = add i64 {p}.i, 1", f"  br label {p}.head", f"{prefix}.exit:"]
    types = ["i32", "i32", "i32", integer, integer, integer, type_, "ptr", integer, "ptr", integer, type_, "ptr", integer]
    return lines, f"declare void @{name}({', '.join(types)})"


def check_index_text(name: str, value: Value, number: int) -> str:
    """Wrap negative indices and find one out of range: `i32 name(in, out, record)`, INDEX_ERROR where there is one."""
    extent, count = value.attrs["extent"], value.type.size
    return f"""define internal i32 @{name}(ptr noalias readonly %in, ptr noalias %out, ptr %record) #0 {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %bad = phi i64 [ -1, %entry ], [ %bad.next, %body ]
  %more = icmp slt i64 %i, {count}
  br i1 %more, label %body, label %exit
body:
  %from = getelementptr i64, ptr %in, i64 %i
  %v = load i64, ptr %from, align 8
  %negative = icmp slt i64 %v, 0
  %up = add i64 %v, {extent}
  %w = select i1 %negative, i64 %up, i64 %v
  %to = getelementptr i64, ptr %out, i64 %i
  store i64 %w, ptr %to, align 8
  %fine = icmp ult i64 %w, {extent}
  %bad.next = select i1 %fine, i64 %bad, i64 %i
  %next = add nuw nsw i64 %i, 1
  br label %head
exit:
  %ok = icmp slt i64 %bad, 0
  br i1 %ok, label %good, label %fail
good:
  ret i32 0
fail:
  %at = getelementptr i64, ptr %in, i64 %bad
  %found = load i64, ptr %at, align 8
  %r1 = getelementptr i64, ptr %record, i64 1
  %r2 = getelementptr i64, ptr %record, i64 2
  store i64 {number}, ptr %record
  store i64 %found, ptr %r1
  store i64 {extent}, ptr %r2
  ret i32 {INDEX_ERROR}
}}
"""
