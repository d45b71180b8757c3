"""Of `bw.scipy.linalg`: `over_batches`, for functions of one matrix that SciPy calls once for each of a stack."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.api.transforms.vmap import vmap
from bwcompiler.frontend.tracing.operands import as_tracer

Function = TypeVar("Function", bound=Callable[..., Any])
EITHER = 0                                       # a vector, or else a matrix


def over_batches(**ranks: int) -> Callable[[Function], Function]:
    """The decorated function takes arrays with more axes than it has core axes, by name of the parameter: those before are a batch.

    Batches are broadcast against each other; the results have their shape before their own.  With EITHER one axis is a vector, and of
    more the last two are a matrix.
    """
    def decorate(fun: Function) -> Function:
        parameters = list(inspect.signature(fun).parameters)
        places = {name: parameters.index(name) for name in ranks}

        @functools.wraps(fun)
        def function(*args: Any, **kwargs: Any) -> Any:
            given = {name: args[place] if place < len(args) else kwargs.get(name) for name, place in places.items()}
            arrays = {name: as_tracer(one) for name, one in given.items() if one is not None}
            cores = {name: min(one.ndim, ranks[name] or 2) for name, one in arrays.items()}
            shape = np.broadcast_shapes(*[one.shape[:one.ndim - cores[name]] for name, one in arrays.items()])
            if not shape:
                return fun(*args, **kwargs)
            if 0 in shape:
                raise ValueError(f"`{fun.__name__}` does not support zero-size batches.")
            names, stacks = list(arrays), []
            for name, one in arrays.items():
                core = one.shape[one.ndim - cores[name]:]
                stacks.append(np.broadcast_to(one, (*shape, *core)).reshape(math.prod(shape), *core))

            def one_of_them(*members: Any) -> Any:
                chosen = dict(zip(names, members, strict=True))
                rest = [chosen.pop(name, value) for name, value in zip(parameters, args, strict=False)]
                return fun(*rest, **{**kwargs, **chosen})

            found = vmap(one_of_them)(*stacks)
            parts = [one.reshape(*shape, *one.shape[1:]) for one in (found if isinstance(found, tuple) else (found,))]
            return tuple(parts) if isinstance(found, tuple) else parts[0]
        return graph_function(function)  # type: ignore[return-value]
    return decorate
