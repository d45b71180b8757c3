"""Operations on numbers for which Python raises, while compiled code gives inf or nan as NumPy does: in a `try` that catches it, the
error is raised.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler.frontend.source.effects.checks import raise_where, raised
from bwcompiler.frontend.source.variables import open_policy
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer

_EXAMPLES: dict[str, Any] = {                      # that raise ZeroDivisionError
    "divide": lambda kind: kind(1) / kind(0), "floor_divide": lambda kind: kind(1) // kind(0), "remainder": lambda kind: kind(1) % kind(0),
    "power": lambda kind: kind(0) ** -kind(1),
}
_OVERFLOWING = frozenset(("exp", "expm1", "exp2", "sinh", "cosh", "pow", "gamma", "lgamma"))
_NEVER_FAILING = frozenset(("fabs", "atan", "atan2", "asinh", "hypot", "isclose", "modf", "isnan", "isinf", "isfinite", "copysign",
                            "degrees", "radians", "nextafter", "cbrt", "erf", "erfc", "tanh"))


def is_caught(error: Exception) -> bool:
    """Whether a handler around is for an exception."""
    policy = open_policy()
    return policy is not None and any(one.catches(error) for one in (*policy.attempts, *policy.tries))


def _raised(example: Any, *args: Any) -> Exception:
    try:
        example(*args)
    except Exception as error:
        return type(error)(*error.args)
    raise AssertionError("an example that raises nothing")


def check_operator(name: str, kind: type, inputs: Sequence[Any], found: Tracer) -> bool:
    """Record what an operator of Python's numbers raises; False in a `try` that catches it but cannot be taken apart."""
    policy = open_policy()
    if policy is None:
        return False
    first, second = inputs
    if name == "power":
        if isinstance(second, Tracer) or second < 0:
            _zero_division(name, kind, np.logical_and(first == 0, second < 0))
        if kind is float:
            _overflow(found, inputs, OverflowError(34, "Numerical result out of range"), np.not_equal(first, 0))
        return True
    if len(policy.tries) > len(policy.attempts) and any(one.divides for one in policy.tries):
        return False
    if isinstance(second, Tracer):
        _zero_division(name, kind, second == 0)
    elif not second and is_caught(ZeroDivisionError()):
        raise raised(_raised(_EXAMPLES[name], kind))
    return True


def _zero_division(name: str, kind: type, wrong: Any) -> None:
    if is_caught(ZeroDivisionError()):
        raise_where(wrong, _raised(_EXAMPLES[name], kind))


def _overflow(found: Tracer, inputs: Sequence[Any], error: Exception, also: Any = True) -> None:
    if is_caught(error):
        raise_where(np.logical_and(_became(np.isinf, found, inputs), also), error)


def _became(test: Any, found: Any, inputs: Sequence[Any]) -> Any:
    """Whether a result is infinite where all operands are finite, or nan where none is."""
    wrong = test(found)
    for one in inputs:
        wrong = np.logical_and(wrong, np.isfinite(one) if test is np.isinf else np.logical_not(np.isnan(one)))
    return wrong


def check_function(function: Any, inputs: Sequence[Any], found: Any) -> None:
    """Record what a function of `math` raises, by the rules of its C source: for nan of numbers, and infinity of finite numbers."""
    name = function.__name__
    if name in _NEVER_FAILING or not isinstance(found, Tracer) or found._type.dtype.kind != "f":
        return
    domain, overflow = _raised(math.sqrt, -1.0), _raised(math.exp, 1e6)
    pole: Any = name not in _OVERFLOWING
    if name in ("gamma", "lgamma"):
        pole = np.logical_and(inputs[0] <= 0, np.floor(inputs[0]) == inputs[0])
    elif name == "pow":
        pole = np.equal(inputs[0], 0)
    if is_caught(domain):
        raise_where(np.logical_or(_became(np.isnan, found, inputs), np.logical_and(_became(np.isinf, found, inputs), pole)), domain)
    if name in _OVERFLOWING:
        _overflow(found, inputs, overflow, np.logical_not(pole))


def check_whole(x: Tracer) -> None:
    """Record what int() and its like raise for nan and infinity."""
    if x._type.dtype.kind != "f":
        return
    for number, test in ((math.nan, np.isnan), (math.inf, np.isinf)):
        error = _raised(int, number)
        if is_caught(error):
            raise_where(test(x), error)


HANDLERS["check_operator"] = check_operator
HANDLERS["check_whole"] = check_whole
