"""The precision of functions of scipy.special, single or double, as in SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.errors import DTypeError
from bwcompiler.frontend.tracing.promotion import Kind
from bwcompiler.ir.types import F32, F64, I64, DType

# Functions that return float32 for small integers and float16; others that SciPy's loops do not compute return float64.
SINGLE_OF_SMALL = frozenset(("entr", "erfinv", "huber", "kl_div", "pseudo_huber", "rel_entr"))


def is_single(loops: Any, kinds: tuple[Kind, ...]) -> bool:
    """The precision of a function that SciPy's loops compute."""
    return any(isinstance(kind, DType) for kind in kinds) and _characters(loops, kinds)[-1] in "fF"


def loop_dtypes(loops: Any, kinds: tuple[Kind, ...]) -> tuple[DType, ...]:
    """The operand dtypes of SciPy's loop for real numbers: integers if there is such a loop, else floats of one precision."""
    real = F32 if is_single(loops, kinds) else F64
    return tuple([I64 if character in "lq" else real for character in _characters(loops, kinds)[:len(kinds)]])


def _characters(loops: Any, kinds: tuple[Kind, ...]) -> list[str]:
    given = [kind.numpy if isinstance(kind, DType) else int if kind is bool else kind for kind in kinds]
    if not any(isinstance(kind, DType) for kind in kinds):              # Python numbers count for themselves
        given = [np.dtype(kind) for kind in given]
    try:
        return [dtype.char for dtype in loops.resolve_dtypes((*given, *[None] * loops.nout))]
    except TypeError as error:
        raise DTypeError(f"scipy.special.{loops.__name__}: {error}") from None


def is_single_composed(name: str, kinds: tuple[Kind, ...]) -> bool:
    """The precision of a function that is composed of ops."""
    own = [kind for kind in kinds if isinstance(kind, DType)]
    if name in SINGLE_OF_SMALL:
        return bool(own) and all(np.can_cast(kind.numpy, np.float32) for kind in own)
    return bool(own) and all(kind is F32 for kind in own)
