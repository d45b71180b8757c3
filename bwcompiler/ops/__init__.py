"""Which ops exist: one file per family, each op declared whole.  Importing this package registers them all."""

from bwcompiler.ops import (
    contraction,
    creation,
    custom,
    elementwise,
    factorization,
    indexing,
    layout,
    linalg,
    reduction,
    region,
    sorting,
    special,
    windows,
)

__all__ = [
    "contraction", "creation", "custom", "elementwise", "factorization", "indexing", "layout", "linalg", "reduction", "region",
    "sorting", "special", "windows",
]
