"""Hand-written programs for the tests of the runtime."""

from __future__ import annotations

from bwcompiler.ir.plan import CallSignature, Leaf
from bwcompiler.ir.types import F64, TensorType, tensor

VECTOR = tensor(F64, (5,))
SCALAR = tensor(F64, ())


def program(buffers: int, body: str, declarations: str = "") -> str:
    """`body` with the buffers as %p0, %p1, ...; it must return a status."""
    loads = "".join(
        f"  %at{k} = getelementptr ptr, ptr %buffers, i64 {k}\n  %p{k} = load ptr, ptr %at{k}\n" for k in range(buffers)
    )
    return f"{declarations}\ndefine i32 @bw_program(ptr %buffers, ptr %arena) nounwind {{\nstart:\n{loads}{body}\n}}\n"


def loop(count: int, body: str, status: str = "ret i32 0") -> str:
    """`body` for %i = 0, 1, ... (`count` > 0)."""
    return (
        "  br label %loop\nloop:\n  %i = phi i64 [ 0, %start ], [ %next, %loop ]\n"
        f"{body}\n  %next = add i64 %i, 1\n  %more = icmp ult i64 %next, {count}\n"
        f"  br i1 %more, label %loop, label %done\ndone:\n  {status}"
    )


def load(buffer: int, index: str = "%i") -> str:
    return f"  %g{buffer} = getelementptr double, ptr %p{buffer}, i64 {index}\n  %x{buffer} = load double, ptr %g{buffer}\n"


def store(buffer: int, value: str, index: str = "%i") -> str:
    return f"  %g{buffer} = getelementptr double, ptr %p{buffer}, i64 {index}\n  store double {value}, ptr %g{buffer}\n"


def sum_of(arguments: int, count: int = 5) -> str:
    """Result 0 (buffer `arguments`) is the sum of f64 arguments."""
    text, total = load(0), "%x0"
    for k in range(1, arguments):
        text += load(k) + f"  %s{k} = fadd double {total}, %x{k}\n"
        total = f"%s{k}"
    return program(arguments + 1, loop(count, text + store(arguments, total)))


def copy_bytes(pairs: list[tuple[int, int, int]], buffers: int) -> str:
    """Copy buffers (from, to, bytes)."""
    calls = "".join(f"  call void @llvm.memcpy.p0.p0.i64(ptr %p{b}, ptr %p{a}, i64 {n}, i1 false)\n" for a, b, n in pairs)
    return program(buffers, calls + "  ret i32 0", "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")


def vectors(count: int, type_: TensorType = VECTOR, **more: object) -> CallSignature:
    """`count` arrays in, one out."""
    return CallSignature(
        arguments=tuple(Leaf(k) for k in range(count)),
        argument_types=(type_,) * count,
        argument_kinds=("array",) * count,  # type: ignore[arg-type]
        result=Leaf(0),
        result_types=(type_,),
        result_kinds=("array",),
        **more,  # type: ignore[arg-type]
    )
