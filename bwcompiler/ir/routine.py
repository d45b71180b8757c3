"""The routine that computes a library op in native code: the `library` field of its declaration.

Lowering uses it to pass operands and results, the runtime to find addresses, `explain()` to name the routine; it also has the
message of a failure.  Where this process has no address for a routine, the op's NumPy reference is called instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bwcompiler.ir.types import DType, component_of

LINALG = "numpy.linalg._umath_linalg"


@dataclass(frozen=True)
class InnerLoop:
    """An inner loop of a NumPy ufunc, for all matrices of a batch in one call.

    names       of the ufunc in `module`; `choose(**attrs)` selects one of several.  None: `choose` returns any name, which is looked up
                when a program needs it.
    lapack      the LAPACK routine that it calls, for `text`.
    types       type characters of the loop; {} stands for that of the operands' dtype, {r} for that of its real parts, {c} for that
                of complex numbers of its precision.  "": those of the operands, then that of the result, once per result.
    core        the ufunc's signature without spaces; "" for an elementwise function.
    results     rule(out, *operands, **attrs) -> the loop's results, as layout ops of `out`; None for a result that is discarded.
                Without a rule the result is `out`.
    operands    likewise the loop's operands, as layout ops of the op's first operand, if they are not the op's operands.
    cleared     for complex operands the result is set to zero first: the loop writes real numbers into some of its real parts.
    overwrites  the loop works in place: its operand 0 is result 0, into which the op's operand is copied first.
    failure     the message of LinAlgError if the loop sets the invalid flag (as NumPy detects failures); None: it never fails.
    natural     operands that must not be negative, and the message of ValueError if one is.
    """

    names: tuple[str, ...]
    types: str
    core: str = ""
    results: Callable[..., tuple[Any, ...]] | None = None
    operands: Callable[..., tuple[Any, ...]] | None = None
    cleared: bool = False
    overwrites: bool = False
    failure: str | None = None
    natural: tuple[int, str] | None = None
    module: str = LINALG
    lapack: str = ""
    choose: Callable[..., str] | None = None

    @property
    def may_call_python(self) -> bool:
        """Whether it may warn or raise, by `scipy.special.errstate`, which is impossible in a thread of the pool."""
        return self.module.startswith("scipy")

    def name(self, attrs: Any) -> str:
        """The name of the ufunc."""
        return self.names[0] if self.choose is None else self.choose(**attrs)

    def dtype(self, value: Any) -> DType:
        """The dtype in the symbol of a value's loop: that of the first operand, or of the last one for loops that are looked up."""
        found: DType = value.operands[0 if self.names else -1].dtype
        return found

    def loop_types(self, dtype: DType) -> str:
        given, real = dtype.numpy.char, component_of(dtype).numpy.char
        return self.types.replace("{}", given).replace("{r}", real).replace("{c}", real.upper())

    def symbol(self, dtype: DType, name: str) -> str:
        """The symbol of the loop's function; that of its data, if there are any, ends in `.data`."""
        return f"bw_loop_{name}_{dtype.name}"

    def symbol_of(self, value: Any) -> str:
        """The symbol of the loop of a value.  Loops that are looked up have other symbols if they take some operands as integers."""
        integers = "".join([str(k) for k, operand in enumerate(value.operands) if operand.dtype.is_integer]) if not self.names else ""
        return self.symbol(self.dtype(value), self.name(value.attrs) + (f"_integers{integers}" if integers else ""))

    def text(self, attrs: Any = None) -> str:
        """The name for explain(); without attributes for the table of ops."""
        inner = f"{'SciPy' if self.module.startswith('scipy') else 'NumPy'}'s inner loop"
        inner = f"{inner} {' or '.join(self.names) if attrs is None else self.name(attrs)}".rstrip()
        return f"LAPACK {self.lapack} ({inner})" if self.lapack else inner


@dataclass(frozen=True)
class Native:
    """Generated code, with BLAS or LAPACK calls if these were found: `bwcompiler.lowering` has it under the op's name.

    routine   the name for explain().
    """

    routine: str
    failure: str | None = None

    def text(self, attrs: Any = None) -> str:
        return self.routine


@dataclass(frozen=True)
class Sort:
    """NumPy's sort functions of a dtype, along the last axis.  positions: of the elements, instead of the elements."""

    positions: bool
    failure: str | None = None

    def symbol(self, dtype: DType, kind: str | None) -> str:
        return sort_symbol(self.positions, dtype, SORT_KINDS[(kind or "quicksort")[0]])

    def text(self, attrs: Any = None) -> str:
        return f"NumPy's {'argsort' if self.positions else 'sort'} function"


@dataclass(frozen=True)
class Selection:
    """Generated code that compares elements along the last axis, around NumPy's sort function of their dtype.

    routine   what it does, for explain().
    """

    routine: str
    failure: str | None = None

    def text(self, attrs: Any = None) -> str:
        return self.routine


@dataclass(frozen=True)
class Fourier:
    """NumPy's inner loops of its Fourier transforms, which work along any axis and take a factor; the ops have NumPy's names."""

    failure: str | None = None

    def name(self, op: str, attrs: Any, extent: int) -> str:
        """The name of the ufunc, for an axis of that extent."""
        if op == "fft":
            return "ifft" if attrs["inverse"] else "fft"
        return op if op == "irfft" else "rfft_n_odd" if extent % 2 else "rfft_n_even"

    def symbol(self, name: str, dtype: DType) -> str:
        return f"bw_{name}_{dtype.name}"

    def text(self, attrs: Any = None) -> str:
        return "NumPy's FFT"


# Ufuncs of numpy.fft, their types for doubles, and the dtypes of the operands.
FOURIER_LOOPS = {"fft": "Dd->D", "ifft": "Dd->D", "rfft_n_even": "dd->D", "rfft_n_odd": "dd->D", "irfft": "Dd->d"}

SORT_KINDS = {"q": 0, "h": 1, "s": 2, "m": 2}         # first letters of NumPy's kinds -> NPY_SORTKIND


def sort_symbol(positions: bool, dtype: DType, kind: int) -> str:
    """The symbol of one of NumPy's sort functions."""
    return f"bw_{'argsort' if positions else 'sort'}_{dtype.name}_{kind}"


Routine = InnerLoop | Native | Sort | Selection | Fourier
