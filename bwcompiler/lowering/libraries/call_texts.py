"""What calls into libraries have in common: which routines there are (`Libraries`), and the functions that call them (`CallText`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from bwcompiler.ir.contracts.program_interface import DECLARE_PARALLEL
from bwcompiler.ir.types import DType
from bwcompiler.lowering.function_text import FunctionText
from bwcompiler.lowering.libraries.shared_calls import sharing_text


class Symbols(Protocol):
    """A set of symbols; addresses may be looked up on demand."""

    def __contains__(self, symbol: object, /) -> bool: ...

    def union(self, more: Iterable[str], /) -> Symbols: ...


class Libraries(NamedTuple):
    """The external routines that programs may call.

    symbols   routines with an address in this process: see `blas_symbol` and `bwcompiler.ir.routine`.
    integer   the LLVM type of BLAS's and LAPACK's integers.
    """

    symbols: Symbols = frozenset()
    integer: str = "i64"

    def blas(self, routine: str, dtype: DType) -> str | None:
        """The symbol of a routine of BLAS (cblas) or LAPACK, if it has an address."""
        symbol = blas_symbol(routine, dtype)
        return symbol if symbol in self.symbols else None


def blas_symbol(routine: str, dtype: DType) -> str:
    """bw_dgemm for ("gemm", f64)."""
    return f"bw_{ {'f32': 's', 'f64': 'd', 'c64': 'c', 'c128': 'z'}.get(dtype.name, dtype.name)}{routine}"


class CallText(NamedTuple):
    """A function of the program, `i32 or void name(operands, result[, record, number])`, and its declarations."""

    text: str
    declares: Sequence[str]
    fallible: bool


def failure_lines(code: int) -> list[str]:
    """The lines of a function that report a failure: number into the record, and return the code."""
    return ["  store i64 %number, ptr %record", f"  ret i32 {code}"]


def call_text(function: FunctionText, failure: Sequence[str], declares: Sequence[str], lanes: int, grain: int | None) -> CallText:
    """A function; if it works on a range of lanes, also the functions that divide these among threads, `grain` at a time."""
    text = function.text(failure)
    if grain is None:
        return CallText(text, declares, function.fallible)
    return CallText(text + sharing_text(function, lanes, grain), [*declares, DECLARE_PARALLEL], function.fallible)
