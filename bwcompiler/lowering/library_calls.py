"""Calls into libraries: factorisations through NumPy's inner loops; index checks; copies.  Matrix products: matrix_products.py."""

from __future__ import annotations

from typing import NamedTuple

from bwcompiler.ir.extent import element_count
from bwcompiler.ir.op import Value

INDEX_ERROR = 1                # status code of an index out of range; record: {number of the check, index, axis extent}
CALLBACK_ERROR = 2
CALLBACK_DONE = 1              # what a callback returns: not 0, which ctypes returns for one that was interrupted in its first line
LINALG_ERROR = 3               # a factorisation failed; record: {number of the call}
INTERRUPTED = 4                # a signal handler raised: the exception is set


class Libraries(NamedTuple):
    """Symbols that programs may call.

    gemm      cblas gemm by dtype, gemv likewise; integer: the LLVM type of their integers.  Empty without a BLAS.
    loops     (op, dtype) -> symbol of NumPy's inner loop for it.
    """

    gemm: dict[str, str]
    gemv: dict[str, str]
    integer: str
    loops: dict[tuple[str, str], str]


def copy_text(name: str, size: int) -> str:
    """`void name(source, target)`: copy a number of bytes."""
    return f"""define internal void @{name}(ptr %source, ptr %target) #1 {{
  call void @llvm.memcpy.p0.p0.i64(ptr %target, ptr %source, i64 {size}, i1 false)
  ret void
}}
"""


# Core extents by op: which of an operand's last two axes each letter of the loop's signature is.
_CORES = {"cholesky": ("mm", "mm"), "inv": ("mm", "mm"), "solve": ("mm", "mn", "mn")}


def loop_text(name: str, value: Value, libraries: Libraries) -> tuple[str, list[str]]:
    """`i32 name(operands, result, record, number)`: a batch through NumPy's inner loop, LINALG_ERROR where it fails.

    The loops report failure by raising the invalid flag (FE_INVALID is 1 on x86 and Arm), as NumPy itself reads it.
    """
    arrays = [*value.operands, value]
    letters: dict[str, int] = {}
    strides: list[int] = []
    outer: list[int] = []
    size = value.dtype.itemsize
    for array, core in zip(arrays, _CORES[value.op.name], strict=True):
        rows, columns = array.shape[-2:]
        letters.setdefault(core[0], rows)
        letters.setdefault(core[1], columns)
        outer.append(rows * columns * size)
        strides += [columns * size, size]
    dimensions = [element_count(value.shape[:-2]), *letters.values()]
    symbol = libraries.loops[value.op.name, value.dtype.name]
    parameters = ", ".join(f"ptr %p{k}" for k in range(len(arrays)))
    lines = [f"define internal i32 @{name}({parameters}, ptr %record, i64 %number) #1 {{"]
    for block, words in (("dimensions", dimensions), ("steps", [*outer, *strides])):
        lines.append(f"  %{block} = alloca [{len(words)} x i64]")
        for k, word in enumerate(words):
            lines += [f"  %{block}{k} = getelementptr i64, ptr %{block}, i64 {k}", f"  store i64 {word}, ptr %{block}{k}"]
    lines.append(f"  %args = alloca [{len(arrays)} x ptr]")
    for k in range(len(arrays)):
        lines += [f"  %args{k} = getelementptr ptr, ptr %args, i64 {k}", f"  store ptr %p{k}, ptr %args{k}"]
    lines += ["  %cleared = call i32 @feclearexcept(i32 1)",
              f"  call void @{symbol}(ptr %args, ptr %dimensions, ptr %steps, ptr null)",
              "  %raised = call i32 @fetestexcept(i32 1)", "  %failed = icmp ne i32 %raised, 0",
              "  br i1 %failed, label %fail, label %good", "good:", "  ret i32 0", "fail:", "  store i64 %number, ptr %record",
              "  %again = call i32 @feclearexcept(i32 1)", f"  ret i32 {LINALG_ERROR}", "}", ""]
    declares = [f"declare void @{symbol}(ptr, ptr, ptr, ptr)", "declare i32 @feclearexcept(i32)", "declare i32 @fetestexcept(i32)"]
    return "\n".join(lines), declares


def check_index_text(name: str, value: Value) -> str:
    """Wrap negative indices and find one out of range: `i32 name(in, out, record, number)`, INDEX_ERROR where there is one."""
    extent, count = value.attrs["extent"], value.type.size
    return f"""define internal i32 @{name}(ptr noalias readonly %in, ptr noalias %out, ptr %record, i64 %number) #1 {{
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
  store i64 %number, ptr %record
  store i64 %found, ptr %r1
  store i64 {extent}, ptr %r2
  ret i32 {INDEX_ERROR}
}}
"""
