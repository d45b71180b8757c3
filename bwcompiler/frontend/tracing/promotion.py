"""The dtypes that NumPy computes in: ufunc type resolution (NEP 50, Python scalars are weak), cached.

The *kind* of an operand is the part that promotion depends on: a DType, or for a weak scalar the Python type int, float or complex.
"""

from __future__ import annotations

from numbers import Rational
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bwcompiler.errors import DTypeError, UnsupportedError
from bwcompiler.ir.types import BOOL, C128, F64, I64, DType, dtype_of

Kind: TypeAlias = DType | type

OPERANDS = (bool, int, float, complex, np.generic, np.ndarray, list, tuple, Rational)      # besides handles
STRONG: dict[type, DType] = {bool: BOOL, int: I64, float: F64, complex: C128}   # the dtype of a Python number on its own


class Resolution(NamedTuple):
    """The dtypes a ufunc reads and gives."""

    inputs: tuple[DType, ...]
    outputs: tuple[DType, ...]


_resolutions: dict[Any, Resolution] = {}
_results: dict[tuple[Kind, ...], DType] = {}


def strong(kind: Kind) -> DType:
    """The dtype of an operand of this kind on its own."""
    return kind if isinstance(kind, DType) else STRONG[kind]


def resolve(ufunc: Any, kinds: tuple[Kind, ...], dtype: DType | None = None, casting: str = "same_kind") -> Resolution:
    """The loop that the ufunc runs on operands of these kinds; `dtype` forces its output."""
    key = (ufunc, kinds, dtype, casting)
    found = _resolutions.get(key)
    if found is None:
        found = _resolutions[key] = _resolve(ufunc, kinds, dtype, casting)
    return found


def _resolve(ufunc: Any, kinds: tuple[Kind, ...], dtype: DType | None, casting: str) -> Resolution:
    arguments = tuple(kind.numpy if isinstance(kind, DType) else kind for kind in kinds)
    if not any(isinstance(kind, DType) for kind in kinds):             # of two Python numbers NumPy compares objects
        arguments = tuple(strong(kind).numpy for kind in kinds)
    options: dict[str, Any] = {"casting": casting}
    if dtype is not None:
        options["signature"] = (*[None] * ufunc.nin, *[dtype.numpy] * ufunc.nout)
    try:
        found = ufunc.resolve_dtypes((*arguments, *[None] * ufunc.nout), **options)
    except TypeError as error:
        raise DTypeError(f"np.{ufunc.__name__}: {error}") from None
    dtypes = [dtype_of(item) for item in found]
    return Resolution(tuple(dtypes[:ufunc.nin]), tuple(dtypes[ufunc.nin:]))


def resolve_reduction(ufunc: Any, dtype: DType) -> DType:
    """The dtype that ufunc.reduce accumulates in: small integers and booleans widen to the default integer."""
    key = (ufunc, dtype, "reduce")
    found = _resolutions.get(key)
    if found is None:
        result = dtype_of(ufunc.resolve_dtypes((None, dtype.numpy, None), reduction=True)[2])
        found = _resolutions[key] = Resolution((dtype,), (result,))
    return found.outputs[0]


def common_dtype(kinds: tuple[Kind, ...]) -> DType:
    """np.result_type."""
    found = _results.get(kinds)
    if found is None:
        samples = [kind.numpy if isinstance(kind, DType) else kind(0) for kind in kinds]
        found = _results[kinds] = dtype_of(np.result_type(*samples))
    return found


def requested(dtype: Any) -> DType | None:
    """The DType of a `dtype=` argument, None where none was given."""
    return None if dtype is None or dtype is np._NoValue else asked(dtype)


def asked(dtype: Any) -> DType:
    """The DType that the user names; what is traced has this machine's byte order."""
    found = dtype_of(dtype)
    if not isinstance(dtype, DType) and not np.dtype(dtype).isnative:
        raise UnsupportedError(f"dtype {np.dtype(dtype).str!r} has another byte order than this machine, which traced arrays do not have\n"
                               f"  hint: {found.numpy} here, and .astype({np.dtype(dtype).str!r}) of the result outside of the function")
    return found


def require_cast(source: DType, target: DType, casting: str, what: str) -> None:
    """Raise as NumPy does where the casting rule forbids the conversion."""
    if source is not target and not np.can_cast(source.numpy, target.numpy, casting):  # type: ignore[arg-type]
        raise DTypeError(f"{what}: cannot cast from {source.numpy!r} to {target.numpy!r} with casting rule {casting!r}\n"
                         f"  hint: make what is written to of dtype {source.numpy} (.astype, dtype=), or "
                         f"x = x + y in the place of x += y; or write y.astype({target.numpy})")


def scalar_of(value: Any, dtype: DType) -> Any:
    """A Python scalar as the dtype holds it (rounded to float32 and so on); raises OverflowError as NumPy does."""
    if dtype is F64 and type(value) is float:
        return value
    if dtype is BOOL and isinstance(value, complex):            # an operand of np.logical_and and the like
        return bool(value)
    if isinstance(value, complex) and dtype.kind != "c":
        raise UnsupportedError(f"the complex constant {value!r} does not fit into {dtype.numpy}")
    try:
        with np.errstate(over="ignore"):
            return dtype.numpy.type(value).item()
    except OverflowError:                                       # of 64 bits NumPy says "too large to convert to C long"
        raise OverflowError(f"Python integer {value} out of bounds for {dtype.numpy}") from None
