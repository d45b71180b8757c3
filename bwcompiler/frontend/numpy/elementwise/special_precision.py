"""Whether functions of scipy.special compute with single or double precision, as SciPy's do."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.errors import DTypeError
from bwcompiler.frontend.tracing.promotion import Kind
from bwcompiler.ir.types import F32, F64, I64, DType

# Those that give float32 for small integers and float16, where others that are not computed by SciPy's loops give float64.
SINGLE_OF_SMALL = frozenset(("entr", "erfinv", "huber", "kl_div", "pseudo_huber", "rel_entr"))


def is_single(loops: Any, kinds: tuple[Kind, ...]) -> bool:
    """Of a function that SciPy's loops compute."""
    return any(isinstance(kind, DType) for kind in kinds) and _characters(loops, kinds)[-1] in "fF"


def loop_dtypes(loops: Any, kinds: tuple[Kind, ...]) -> tuple[DType, ...]:
    """What a loop takes that SciPy has for real numbers: integers where it has one for integers, else all floats of one precision."""
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
    """Of one that is composed of ops."""
    own = [kind for kind in kinds if isinstance(kind, DType)]
    if name in SINGLE_OF_SMALL:
        return bool(own) and all(np.can_cast(kind.numpy, np.float32) for kind in own)
    return bool(own) and all(kind is F32 for kind in own)
