"""The math library: elementary and special functions as LLVM IR, of one number or of vectors.

`math_function("exp", "f32", 16).symbol` is what to call for 16 numbers at once; `math_texts` gives the texts to put in the module, once,
and the declarations that they need.  Functions of few calls are inlined; the others are called, which costs nothing measurable and halves
LLVM's time for long bodies.  Those of one number are always called where they are compiled for other instructions
(`Target.scalar_attributes`).  Formulas live in the sibling modules `exponential`, `hyperbolic`, `trigonometric`, `algebraic` and
`special`; polynomials in `coefficients`, fitted by `tools/fit_math.py`; `emitter` turns formulas into IR.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bwcompiler.lowering.math import algebraic as math_algebraic
from bwcompiler.lowering.math import exponential as math_exponential
from bwcompiler.lowering.math import hyperbolic as math_hyperbolic
from bwcompiler.lowering.math import special as math_special
from bwcompiler.lowering.math import trigonometric as math_trigonometric
from bwcompiler.lowering.math.emitter import FORMATS, Body, Value
from bwcompiler.target import Target

Formula = Callable[..., Value]
_CALLS = re.compile(r"call [^@\n]*(@bw\.[\w.]+)\(")


# The float operations that are functions instead of instructions; name: (number of operands, formula).
# Special functions that are composed of these (an op's `scalar`) have no row.
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
    "power": (2, math_exponential.pow_),
    "sigmoid": (1, math_hyperbolic.sigmoid),
    "sin": (1, math_trigonometric.sin),
    "sinh": (1, math_hyperbolic.sinh),
    "tan": (1, math_trigonometric.tan),
    "tanh": (1, math_hyperbolic.tanh),
}


INLINED_CALLS = 2              # functions with at most this many call sites are inlined
Wanted = tuple[str, str, int]  # name, dtype, width


@dataclass(frozen=True)
class MathFunction:
    """One function of `arity` operands of `dtype`, `width` numbers at a time: call it as `call <type> {symbol}(...)`."""

    name: str
    dtype: str
    symbol: str
    arity: int
    width: int = 1


@dataclass(frozen=True)
class Definition:
    """One function (head, body) and what it refers to."""

    head: str
    body: str
    intrinsics: frozenset[str]
    tables: tuple[str, ...]


def math_names() -> tuple[str, ...]:
    """All functions, in alphabetical order; each exists in f32 and f64."""
    return tuple(sorted(FUNCTIONS))


def math_function(name: str, dtype: str, width: int = 1) -> MathFunction:
    if name not in FUNCTIONS:
        raise KeyError(f"no math function {name!r}; there are {', '.join(math_names())}")
    if dtype not in FORMATS:
        raise KeyError(f"math function {name!r} has no version for {dtype!r}, only for {', '.join(FORMATS)}")
    symbol = f"@bw.{name}.{dtype}" if width == 1 else f"@bw.{name}.{dtype}x{width}"
    return MathFunction(name, dtype, symbol, FUNCTIONS[name][0], width)


@functools.cache
def definition(name: str, dtype: str, width: int, has_fma: bool) -> Definition:
    function = math_function(name, dtype, width)
    parameters = ("x", "y")[: function.arity]
    body = Body(parameters, FORMATS[dtype], has_fma, width)
    result = FUNCTIONS[name][1](body, *body.parameters)
    type_ = body.whole(FORMATS[dtype].ir)
    head = f"define internal {type_} {function.symbol}({', '.join(f'{type_} %{parameter}' for parameter in parameters)})"
    lines = ["entry:", *body.lines, f"  ret {type_} {result.text}", "}"]
    tables = tuple(body.tables[name] for name in sorted(body.tables))
    return Definition(head, "\n".join(lines), frozenset(body.intrinsics), tables)


def math_texts(wanted: Iterable[Wanted], texts: Iterable[str], target: Target) -> tuple[list[str], tuple[str, ...]]:
    """IR texts of these functions and of their tables, each once, in an order that depends on the set only; the `declare` lines they need.

    `texts` is what calls them.  The bits depend on whether the target has an instruction for fused multiply-add, and on nothing else of it.
    """
    names = sorted(set(wanted))
    found = [definition(*name, target.has_fma) for name in names]
    calls = Counter(symbol for text in texts for symbol in _CALLS.findall(text)) if names else Counter()
    parts = sorted({line for item in found for line in item.tables})
    for (name, dtype, width), item in zip(names, found, strict=True):
        attributes = target.function_attributes if width > 1 else target.scalar_attributes
        inline = calls[math_function(name, dtype, width).symbol] <= INLINED_CALLS and attributes == target.function_attributes
        parts.append(f"{item.head} {'alwaysinline' if inline else 'noinline'} {attributes} {{\n{item.body}\n")
    return parts, tuple(sorted({line for item in found for line in item.intrinsics}))
