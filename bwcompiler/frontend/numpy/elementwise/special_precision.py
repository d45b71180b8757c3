"""Whether functions of scipy.special compute with single or double precision, as SciPy's do."""

from __future__ import annotations

from typing import Any

import numpy as np

from bwcompiler.frontend.tracing.promotion import Kind
from bwcompiler.ir.types import F32, DType

# Those that give float32 for small integers and float16, where others that are not computed by SciPy's loops give float64.
SINGLE_OF_SMALL = frozenset(("entr", "erfinv", "huber", "kl_div", "pseudo_huber", "rel_entr"))


def is_single(loops: Any, kinds: tuple[Kind, ...]) -> bool:
    """Of a function that SciPy's loops compute."""
    if not any(isinstance(kind, DType) for kind in kinds):
        return False
    given = [kind.numpy if isinstance(kind, DType) else int if kind is bool else kind for kind in kinds]
    return str(loops.resolve_dtypes((*given, *[None] * loops.nout))[-1].char) in "fF"


def is_single_composed(name: str, kinds: tuple[Kind, ...]) -> bool:
    """Of one that is composed of ops."""
    own = [kind for kind in kinds if isinstance(kind, DType)]
    if name in SINGLE_OF_SMALL:
        return bool(own) and all(np.can_cast(kind.numpy, np.float32) for kind in own)
    return bool(own) and all(kind is F32 for kind in own)
