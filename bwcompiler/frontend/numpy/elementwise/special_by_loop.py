"""Functions of scipy.special by SciPy's loops: of real numbers, and of complex numbers with real parameters."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from bwcompiler import lazy, ops
from bwcompiler.errors import DTypeError, UnsupportedError
from bwcompiler.frontend.numpy.elementwise.special_precision import is_single
from bwcompiler.frontend.numpy.elementwise.ufuncs import Ufunc
from bwcompiler.frontend.tracing.operands import broadcast_shapes, cast, materialise, operand
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import fresh
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import C64, C128, F32, F64, I64, DType
from bwcompiler.ops.special.loops import MODULE, part

loops = lazy.module(MODULE)

# Operands that SciPy's loops truncate to integers with a warning (for which they call Python), and functions that always warn for floats.
WHOLE_OPERANDS = {**dict.fromkeys(("expn", "kn", "yn", "pdtri", "smirnov", "smirnovi"), (0,)),
                  **dict.fromkeys(("nbdtr", "nbdtrc", "nbdtri"), (0, 1))}
WARN_OF_FLOATS = ("bdtr", "bdtrc", "bdtri")
CHARACTERS = {"f": F32, "d": F64, "F": C64, "D": C128}


def special_by_loop(name: str, ufunc: Any) -> Ufunc | None:
    """The rule of a function of scipy.special that SciPy's loop computes, if SciPy is loaded and has it."""
    own = getattr(sys.modules.get(MODULE), name, None)
    if not isinstance(own, np.ufunc) or (ufunc is not None and ufunc is not own):
        return None
    sides = [types.partition("->") for types in own.types if set(types) <= set("fdFD->")]
    if sides and all(                                    # real numbers are taken as complex
            set(given) & set("FD") and set(found) <= set("FD") for given, _, found in sides):
        return Ufunc(name, None, lambda *xs: complex_special(name, tuple(map(fresh, xs)), xs[0].dtype is F32), True, own)
    of_reals = [types for types in own.types if set(types[:own.nin]) <= set("ld") and set(types[-own.nout:]) == {"d"}]
    if not of_reals:
        raise UnsupportedError(f"scipy.special.{name} has no loop for real numbers alone ({', '.join(own.types)}), and is not supported on "
                               "traced arrays")
    whole = WHOLE_OPERANDS.get(name, ())

    def rule(*xs: Value) -> Any:
        if name in WARN_OF_FLOATS and xs[1].dtype is not I64:
            raise UnsupportedError(f"scipy.special.{name} of floats calls Python in each call, for a warning, and is not supported on "
                                   "traced arrays\n  hint: integers as its second argument")
        real = next((x.dtype for x in xs if x.dtype.is_float), F64)
        operands = [x if x.dtype is I64 else ops.trunc(cast(x, real)) if k in whole else cast(x, real) for k, x in enumerate(xs)]
        found = ops.special_function(*operands, name=name, results=own.nout)
        return tuple([part(found, k, own.nout) for k in range(own.nout)]) if own.nout > 1 else found
    return Ufunc(name, None, rule, True, own)


def complex_special(name: str, inputs: tuple[Any, ...], known_single: bool | None = None) -> Any:
    """A function of scipy.special with complex inputs or results: a value or a tuple of values."""
    own: Any = getattr(loops, name, None)
    payloads, kinds = zip(*[operand(x) for x in inputs], strict=True)
    complex_ = [kind is complex or (isinstance(kind, DType) and kind.is_complex) for kind in kinds]
    patterns = _patterns(own, complex_) if isinstance(own, np.ufunc) else []
    if not patterns:
        raise DTypeError(f"scipy.special.{name} is not defined for complex numbers, or not for complex parameters")
    pattern = min(patterns, key=lambda one: one.count("D"))
    single = pattern.replace("d", "f").replace("D", "F")
    if any(one.startswith(f"{single}->") for one in own.types) and (is_single(own, kinds) if known_single is None else known_single):
        pattern = single
    shape = payloads[0].shape if len(payloads) == 1 else broadcast_shapes([payload.shape for payload in payloads])
    values = [materialise(payload, CHARACTERS[character], shape) for payload, character in zip(payloads, pattern, strict=True)]
    found = ops.special_function(*values, name=own.__name__, results=own.nout)
    return tuple([part(found, k, own.nout) for k in range(own.nout)]) if own.nout > 1 else found


def _patterns(ufunc: Any, complex_: list[bool]) -> list[str]:
    """The types of its double-precision loops that accept the operands; complex ones for loops of complex numbers."""
    found = [types.partition("->")[0] for types in ufunc.types]
    return [one for one in found if set(one) <= set("dD") and one.endswith("D")
            and all(character == "D" or not is_complex for character, is_complex in zip(one, complex_, strict=True))]


HANDLERS["special_by_loop"] = special_by_loop
