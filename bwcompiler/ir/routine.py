"""What computes a library op in native code: the `library` field of its declaration.

Lowering reads how operands and results are passed, the runtime finds the addresses, `explain()` names the routine, and a
failure has one message.  Where this process has no address for a routine, the op's NumPy reference is called instead.
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

    names       of the ufunc in `module`; of several, `choose(**attrs)` gives the one.  None: `choose` gives any, which is looked up when
                a program needs it.
    lapack      the LAPACK routine that it calls, for `text`.
    types       characters of the loop's types; {} stands for that of the operands' dtype, {r} for that of its real parts, {c} for that
                of complex numbers of its precision.  "": those of the operands, and of the result, as often as there are results.
    core        the ufunc's signature without blanks; "" for an elementwise function.
    results     rule(out, *operands, **attrs) -> what the loop's results are of `out`, as layout ops of it; None for one that is not
                kept.  Without a rule the result is `out`.
    operands    the same for its operands, where they are not those of the op, from the op's first.
    cleared     of complex operands the result is zeros before: the loop writes real numbers into some real parts of it.
    overwrites  the loop's operand 0 is not the op's, but its result 0, which gets a copy of the op's first.
    failure     what LinAlgError says when the loop raises the invalid flag, as NumPy itself finds out; None: it never fails.
    natural     operands that must not be negative, and what ValueError says if one is.
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
        """Whether it may warn or raise as `scipy.special.errstate` says, which a thread of the pool cannot."""
        return self.module.startswith("scipy")

    def name(self, attrs: Any) -> str:
        """Of the ufunc."""
        return self.names[0] if self.choose is None else self.choose(**attrs)

    def dtype(self, value: Any) -> DType:
        """The dtype of an op's value that its loop is named by: that of the first operand; of loops that are looked up, the last one's."""
        found: DType = value.operands[0 if self.names else -1].dtype
        return found

    def loop_types(self, dtype: DType) -> str:
        given, real = dtype.numpy.char, component_of(dtype).numpy.char
        return self.types.replace("{}", given).replace("{r}", real).replace("{c}", real.upper())

    def symbol(self, dtype: DType, name: str) -> str:
        """Of the loop's function; that of its data, if it has some, ends in `.data`."""
        return f"bw_loop_{name}_{dtype.name}"

    def symbol_of(self, value: Any) -> str:
        """Of the loop of a value.  Of loops that are looked up, those that take some operands as integers are others."""
        integers = "".join([str(k) for k, operand in enumerate(value.operands) if operand.dtype.is_integer]) if not self.names else ""
        return self.symbol(self.dtype(value), self.name(value.attrs) + (f"_integers{integers}" if integers else ""))

    def text(self, attrs: Any = None) -> str:
        """For explain(); without attributes for the table of ops."""
        inner = f"{'SciPy' if self.module.startswith('scipy') else 'NumPy'}'s inner loop"
        inner = f"{inner} {' or '.join(self.names) if attrs is None else self.name(attrs)}".rstrip()
        return f"LAPACK {self.lapack} ({inner})" if self.lapack else inner


@dataclass(frozen=True)
class Native:
    """Native code of our own, around BLAS or LAPACK calls where these were found: `bwcompiler.lowering` has it by the op's name.

    routine   what explain() calls it.
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
class Fourier:
    """NumPy's inner loops of its Fourier transforms, which work along any axis and take a factor; the ops have NumPy's names."""

    failure: str | None = None

    def name(self, op: str, attrs: Any, extent: int) -> str:
        """Of the ufunc, for an axis of that extent."""
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
    """Of one of NumPy's sort functions."""
    return f"bw_{'argsort' if positions else 'sort'}_{dtype.name}_{kind}"


Routine = InnerLoop | Native | Sort | Fourier
