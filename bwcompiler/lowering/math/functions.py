"""The inline math library: elementary and special functions as scalar LLVM IR that the loop vectoriser widens.

`math_function("exp", "f32").symbol` is what to call; `definitions` gives the text to put in the module, once, and
`intrinsics` the declarations that text needs.  Formulas live in the sibling modules `math_exponential`,
`math_hyperbolic`, `math_trigonometric`, `math_algebraic` and `math_special`; polynomials in `math_coefficients`, fitted
by `tools/fit_math.py`; `math_emitter` turns formulas into IR.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bwcompiler.lowering.math import algebraic as math_algebraic
from bwcompiler.lowering.math import exponential as math_exponential
from bwcompiler.lowering.math import hyperbolic as math_hyperbolic
from bwcompiler.lowering.math import special as math_special
from bwcompiler.lowering.math import trigonometric as math_trigonometric
from bwcompiler.lowering.math.emitter import FORMATS, Body, Value

Formula = Callable[..., Value]


# name: (number of operands, formula)
FUNCTIONS: dict[str, tuple[int, Formula]] = {
    "arccos": (1, math_trigonometric.arccos),
    "arccosh": (1, math_hyperbolic.arccosh),
    "arcsin": (1, math_trigonometric.arcsin),
    "arcsinh": (1, math_hyperbolic.arcsinh),
    "arctan": (1, math_trigonometric.arctan),
    "arctan2": (2, math_trigonometric.arctan2),
    "arctanh": (1, math_hyperbolic.arctanh),
    "cbrt": (1, math_algebraic.cbrt),
    "cos": (1, math_trigonometric.cos),
    "cosh": (1, math_hyperbolic.cosh),
    "digamma": (1, math_special.digamma),
    "erf": (1, math_special.erf),
    "erfc": (1, math_special.erfc),
    "erfinv": (1, math_special.erfinv),
    "exp": (1, math_exponential.exp),
    "exp2": (1, math_exponential.exp2),
    "expm1": (1, math_exponential.expm1),
    "hypot": (2, math_algebraic.hypot),
    "lgamma": (1, math_special.lgamma),
    "log": (1, math_exponential.log),
    "log10": (1, math_exponential.log10),
    "log1p": (1, math_exponential.log1p),
    "log2": (1, math_exponential.log2),
    "logaddexp": (2, math_hyperbolic.logaddexp),
    "pow": (2, math_exponential.pow_),
    "sigmoid": (1, math_hyperbolic.sigmoid),
    "sin": (1, math_trigonometric.sin),
    "sinh": (1, math_hyperbolic.sinh),
    "sqrt": (1, math_algebraic.sqrt),
    "tan": (1, math_trigonometric.tan),
    "tanh": (1, math_hyperbolic.tanh),
}


@dataclass(frozen=True)
class MathFunction:
    """What a caller needs: `call <type> symbol(<type> ..., <type> ...)` with `arity` operands of `dtype`."""

    name: str
    dtype: str
    symbol: str
    arity: int


@dataclass(frozen=True)
class Definition:
    """The text of one function and what it refers to."""

    text: str
    intrinsics: frozenset[str]
    tables: tuple[str, ...]


def math_names() -> tuple[str, ...]:
    """All functions, in alphabetical order; each exists in f32 and f64."""
    return tuple(sorted(FUNCTIONS))


def math_function(name: str, dtype: str) -> MathFunction:
    if name not in FUNCTIONS:
        raise KeyError(f"no math function {name!r}; there are {', '.join(math_names())}")
    if dtype not in FORMATS:
        raise KeyError(f"math function {name!r} has no version for {dtype!r}, only for {', '.join(FORMATS)}")
    return MathFunction(name, dtype, f"@bw.{name}.{dtype}", FUNCTIONS[name][0])


@functools.cache
def definition(name: str, dtype: str, has_fma: bool) -> Definition:
    function = math_function(name, dtype)
    format_ = FORMATS[dtype]
    parameters = ("x", "y")[: function.arity]
    body = Body(parameters, format_, has_fma)
    result = FUNCTIONS[name][1](body, *body.parameters)
    signature = ", ".join(f"{format_.ir} %{parameter}" for parameter in parameters)
    lines = [
        f"define internal {format_.ir} {function.symbol}({signature}) alwaysinline nounwind {{",
        *body.lines,
        f"  ret {format_.ir} {result.text}",
        "}",
    ]
    tables = tuple(body.tables[name] for name in sorted(body.tables))
    return Definition("\n".join(lines), frozenset(body.intrinsics), tables)


def wanted_definitions(functions: Iterable[tuple[str, str]], has_fma: bool) -> list[Definition]:
    return [definition(name, dtype, has_fma) for name, dtype in sorted(set(functions))]


def definitions(functions: Iterable[tuple[str, str]], has_fma: bool) -> str:
    """IR text of these (name, dtype) and of their tables, each once, in an order that depends on the set only.

    `has_fma`: whether the CPU has an instruction for it; results may differ in the last bits if not.
    """
    wanted = wanted_definitions(functions, has_fma)
    tables = sorted({line for item in wanted for line in item.tables})
    return "\n\n".join([*tables, *(item.text for item in wanted)]) + "\n"


def intrinsics(functions: Iterable[tuple[str, str]], has_fma: bool) -> tuple[str, ...]:
    """The `declare` lines that `definitions` of the same functions needs, sorted."""
    return tuple(sorted({line for item in wanted_definitions(functions, has_fma) for line in item.intrinsics}))
