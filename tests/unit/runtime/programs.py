"""Hand-written programs for the tests of the runtime, and what calls of them raise and fall back to."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from bwcompiler.ir.contracts.call_signature import CallSignature, Container, Leaf
from bwcompiler.ir.types import F64, TensorType, tensor
from bwcompiler.runtime.executable import Executable

VECTOR = tensor(F64, (5,))
SCALAR = tensor(F64, ())
X, Y, Z = np.arange(5.0), np.arange(5.0) * 10, np.full(5, 0.5)


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


class ProgramError(Exception):
    pass


def slow_path(*args: Any, **kwargs: Any) -> Any:
    return ("slow", args, kwargs)


def raise_error(code: int, record: bytes) -> None:
    raise ProgramError(code, struct.unpack("8q", record))


def native(text: str, signature: CallSignature, captured: Any = (), statics: Any = (), reads: Any = ()) -> Any:
    return Executable(text, signature).bind(slow_path, raise_error, captured, statics, reads)


def takes_slow_path(function: Any, *args: Any, **kwargs: Any) -> bool:
    result = function(*args, **kwargs)
    if not (isinstance(result, tuple) and len(result) == 3 and result[0] == "slow"):
        return False
    return all(a is b for a, b in zip(result[1], args, strict=True)) and result[2] == kwargs


# Leaves 0..3 in a tree with every kind of container; results are leaves + 1.
NESTED = CallSignature(
    arguments=(
        Container("tuple", (Leaf(0), Container("list", (Leaf(1), Container("none"))))),
        Container("dict", (Leaf(2), Container("tuple", (Leaf(3),)), Container("list")), ("w", "größe b", "empty")),
    ),
    argument_types=(VECTOR, VECTOR, VECTOR, SCALAR),
    argument_kinds=("array", "array", "array", "float"),
    result=Container(
        "list",
        (
            Container("dict", (Leaf(2), Container("none"), Leaf(0)), ("w", "none", "größe b")),
            Container("tuple", (Leaf(3), Container("tuple"), Container("list", (Leaf(1),)))),
            Container("dict"),
        ),
    ),
    result_types=(VECTOR, VECTOR, VECTOR, SCALAR),
    result_kinds=("array", "array", "array", "scalar"),
)
NESTED_TEXT = copy_bytes([(0, 4, 40), (1, 5, 40), (2, 6, 40), (3, 7, 8)], 8)


def nested_arguments() -> tuple[Any, ...]:
    return ((X, [Y, None]), {"w": Z, "größe b": (1.5,), "empty": []})
