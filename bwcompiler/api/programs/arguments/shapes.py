"""Shapes and dtypes without data: to compile for arrays that do not exist yet, and to find the types that a function returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.tracing.refusals.tracebacks import shows_users_frames
from bwcompiler.frontend.tracing.trace import trace


@dataclass(frozen=True)
class ShapeDtypeStruct:
    """An array argument by shape and dtype alone (jax.ShapeDtypeStruct).

    >>> import numpy as np, bwcompiler as bw
    >>> prog = bw.compile(lambda x: np.sum(x * x), bw.ShapeDtypeStruct((3,), np.float32))
    >>> prog.backward(np.ones(3, np.float32))[0].tolist()
    [2.0, 2.0, 2.0]
    """

    shape: tuple[int, ...]
    dtype: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple([int(extent) for extent in self.shape]))
        object.__setattr__(self, "dtype", np.dtype(self.dtype))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))


@shows_users_frames
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What fun(*args, **kwargs) returns, with a ShapeDtypeStruct for every array; nothing is computed.

    Arguments are arrays, numbers, ShapeDtypeStructs and containers of them.  Raises what tracing fun raises.

    >>> import numpy as np, bwcompiler as bw
    >>> bw.eval_shape(lambda x, w: (x @ w, np.max(x)), np.ones((2, 3)), bw.ShapeDtypeStruct((3, 4), np.float64))[0].shape
    (2, 4)
    """
    traced = trace(fun, args, kwargs)
    structs = [ShapeDtypeStruct(output.shape, output.dtype.numpy) for output in traced.outputs]
    return tree.unflatten(traced.output_tree, structs)
