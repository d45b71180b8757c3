"""Scalar expressions: the bodies of ops (`element` rules) and of loops.

A `Scalar` is an immutable DAG node over machine scalars.  Element rules are written with operators and the functions
of this module; their leaves are `read`s of an operand at an index.  Lowering turns reads into buffer loads.

`OPERATIONS` gives each operation its NumPy meaning; the loop interpreter evaluates with it and the LLVM emitter must
agree with it.  Index expressions are `Extent`s over loop indices, or integer Scalars (data-dependent: gathers).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from bwcompiler.errors import InternalError
from bwcompiler.ir.extent import Extent
from bwcompiler.ir.types import BOOL, I64, DType, complex_of, component_of


class Word:
    """A scalar parameter of a kernel: it replaces a constant (`full`) that differs between the groups that share the kernel."""

    __slots__ = ("dtype", "name")

    def __init__(self, name: str, dtype: DType) -> None:
        self.name = name
        self.dtype = dtype

    def __repr__(self) -> str:
        return self.name


class Scalar:
    """One scalar operation.  `data` holds its static part: a constant, an index expression, a name, a dtype."""

    __slots__ = ("args", "data", "dtype", "op")

    def __init__(self, op: str, args: tuple[Scalar, ...], dtype: DType, data: Any = None) -> None:
        self.op = op
        self.args = args
        self.dtype = dtype
        self.data = data

    def __repr__(self) -> str:
        inner = [repr(arg) for arg in self.args]
        if self.data is not None:
            inner.append(repr(self.data))
        return f"{self.op}({', '.join(inner)})"

    def __add__(self, other: Any) -> Scalar:
        return operation("add", self, other)

    def __radd__(self, other: Any) -> Scalar:
        return operation("add", other, self)

    def __sub__(self, other: Any) -> Scalar:
        return operation("subtract", self, other)

    def __rsub__(self, other: Any) -> Scalar:
        return operation("subtract", other, self)

    def __mul__(self, other: Any) -> Scalar:
        return operation("multiply", self, other)

    def __rmul__(self, other: Any) -> Scalar:
        return operation("multiply", other, self)

    def __truediv__(self, other: Any) -> Scalar:
        return operation("divide", self, other)

    def __rtruediv__(self, other: Any) -> Scalar:
        return operation("divide", other, self)

    def __neg__(self) -> Scalar:
        return operation("negative", self)

    def __lt__(self, other: Any) -> Scalar:
        return operation("less", self, other)

    def __le__(self, other: Any) -> Scalar:
        return operation("less_equal", self, other)

    def __gt__(self, other: Any) -> Scalar:
        return operation("greater", self, other)

    def __ge__(self, other: Any) -> Scalar:
        return operation("greater_equal", self, other)

    def __and__(self, other: Scalar) -> Scalar:
        return operation("bitwise_and", self, other)

    def __or__(self, other: Scalar) -> Scalar:
        return operation("bitwise_or", self, other)

    def equals(self, other: Any) -> Scalar:
        """self == other, as a boolean scalar."""
        return operation("equal", self, other)


IndexExpression: TypeAlias = Extent | Scalar
Read = Callable[..., Scalar]                       # read(index, ...) -> the element of an operand at that index

# The meaning of every operation on scalars of one dtype; "select" and "cast" are separate below.
OPERATIONS: dict[str, np.ufunc] = {
    name: getattr(np, name) for name in (
        "add subtract multiply divide negative absolute sign sqrt floor ceil trunc rint maximum minimum fmax fmin "
        "floor_divide remainder fmod copysign equal not_equal less less_equal greater greater_equal "
        "bitwise_and bitwise_or bitwise_xor invert left_shift right_shift isnan isinf isfinite signbit nextafter "
        "exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh "
        "arctanh cbrt hypot power logaddexp"
    ).split()
}
PREDICATES = frozenset("equal not_equal less less_equal greater greater_equal isnan isinf isfinite signbit".split())

def const(value: Any, dtype: DType) -> Scalar:
    """A compile-time scalar; or, for a `Word`, its value at run time."""
    return Scalar("word" if type(value) is Word else "const", (), dtype, value)


def operation(name: str, *args: Any) -> Scalar:
    """name(args); Python numbers take the dtype of the first Scalar among the arguments."""
    dtype = next(arg.dtype for arg in args if isinstance(arg, Scalar))
    scalars = tuple(arg if isinstance(arg, Scalar) else const(arg, dtype) for arg in args)
    if any(scalar.dtype is not dtype for scalar in scalars):
        raise InternalError(f"scalar {name}: mixed dtypes {[scalar.dtype for scalar in scalars]}")
    return Scalar(name, scalars, BOOL if name in PREDICATES else dtype)


PRIMITIVES: set[str] = set()               # operations that op declarations use; lowering must implement all of them


def primitive(name: str) -> Callable[..., Scalar]:
    """The scalar rule of an op that is one operation."""
    PRIMITIVES.add(name)
    return lambda *args: operation(name, *args)


def select(condition: Scalar, x: Any, y: Any) -> Scalar:
    """x where condition else y."""
    dtype = x.dtype if isinstance(x, Scalar) else y.dtype
    x, y = (arg if isinstance(arg, Scalar) else const(arg, dtype) for arg in (x, y))
    return Scalar("select", (condition, x, y), dtype)


def guard(condition: Scalar, x: Scalar, y: Scalar) -> Scalar:
    """x where condition else y, lazily: the reads of x need to be in range only if the condition holds."""
    return Scalar("select", (condition, x, y), x.dtype, "lazy")


def cast(x: Scalar, dtype: DType) -> Scalar:
    """x converted as NumPy's astype does."""
    return x if x.dtype is dtype else Scalar("cast", (x,), dtype)


# Parts of complex numbers: named after the ops that define them; lowering splits them (`lowering/loops/complex/split_complex.py`).
def real(z: Scalar) -> Scalar:
    """The real part of a complex scalar."""
    return Scalar("real", (z,), component_of(z.dtype))


def imag(z: Scalar) -> Scalar:
    """The imaginary part of a complex scalar."""
    return Scalar("imag", (z,), component_of(z.dtype))


def modulus(z: Scalar) -> Scalar:
    """|z| of a complex scalar."""
    return Scalar("modulus", (z,), component_of(z.dtype))


def conjugate(z: Scalar) -> Scalar:
    """z with its imaginary part negated."""
    return Scalar("conjugate", (z,), z.dtype)


def make_complex(x: Scalar, y: Scalar) -> Scalar:
    """x + iy."""
    return Scalar("make_complex", (x, y), complex_of(x.dtype))


def index_value(extent: Extent) -> Scalar:
    """A loop index (or affine expression of indices) as an i64 scalar."""
    if isinstance(extent, int):
        return const(extent, I64)
    return Scalar("index", (), I64, extent)


def as_position(value: Scalar) -> IndexExpression:
    """An integer scalar as an entry of an index: affine if it consists only of loop indices."""
    return value.data if value.op == "index" else value


def in_range(position: Extent, low: Extent, high: Extent) -> Scalar:
    """low <= position < high, as a guard: lowering splits loops at its bounds where it can."""
    return Scalar("in_range", (), BOOL, (position, low, high))


def read(operand: int, dtype: DType, index: tuple[IndexExpression, ...]) -> Scalar:
    """Operand number `operand` at an index; an index entry may be an integer Scalar."""
    return Scalar("read", (), dtype, (operand, index))
