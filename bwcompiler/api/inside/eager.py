"""Functions of this package (`bw.nn`, `bw.scipy.special`) that work on traced and on plain arrays.

`graph_function` makes one: inside a trace it records; on plain arrays it is compiled like any other function, once per signature.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from bwcompiler.api.programs.functions import JitFunction
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.refusals.tracebacks import shows_users_frames
from bwcompiler.frontend.tracing.storages.region import active_region

OPTIONS = frozenset(("axis", "stride", "padding", "dilation", "kernel_size", "output_padding", "normalized_shape", "dtype"))
PYTORCH = (("input", "x"), ("tensor", "x"), ("logits", "x"), ("input1", "x1"), ("input2", "x2"), ("weight", "w"), ("bias", "b"),
           ("target", "y"), ("dim", "axis"), ("keepdim", "keepdims"))         # PyTorch's keywords, and ours if they differ
Function = TypeVar("Function", bound=Callable[..., Any])


def graph_function(fun: Function) -> Function:
    """Make a function of traced values that also takes plain arrays: inside a trace it records, outside it is compiled and run.

    Parameters annotated with anything but Any are options, hence static; so are those named in `OPTIONS`.
    """
    return _made(fun, False)


def network_function(fun: Function) -> Function:
    """A `graph_function` that also takes the keywords of PyTorch's function of that name."""
    return _made(fun, False, PYTORCH)


def mutating_network_function(fun: Function) -> Function:
    """A `network_function` that writes to its arguments, also if these are plain arrays."""
    return _made(fun, True, PYTORCH)


def _made(fun: Function, mutates: bool, spellings: Sequence[tuple[str, str]] = ()) -> Function:
    signature = inspect.signature(fun)
    signature_text = ", ".join([str(one.replace(annotation=one.empty)) for one in signature.parameters.values()])
    options = OPTIONS.union([parameter.name for parameter in signature.parameters.values() if parameter.annotation != "Any"])
    keywords = {theirs: ours for theirs, ours in spellings if ours in signature.parameters and theirs not in signature.parameters}

    @shows_users_frames
    @functools.wraps(fun)
    def function(*args: Any, **kwargs: Any) -> Any:
        if keywords and not keywords.keys().isdisjoint(kwargs):
            kwargs = _respelled(fun, keywords, kwargs)
        if active_region() is not None:
            return call(fun, *args, **kwargs)
        try:
            arguments = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{fun.__name__}() {error}\n  hint: it takes {signature_text}") from None
        static = tuple([name for name, value in arguments.items() if name in options or not is_array(value)])
        chosen = {name: _hashable(arguments[name]) for name in static}
        return _compiled(function, tuple(sorted(static)), mutates)(**{**arguments, **chosen})

    return function  # type: ignore[return-value]


def _respelled(fun: Callable[..., Any], keywords: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, Any]:
    both = next((f"{keywords[name]}= and {name}=" for name in given if keywords.get(name) in given), None)
    if both:
        raise TypeError(f"{fun.__name__}() got {both}, which are the same")
    return {keywords.get(name, name): value for name, value in given.items()}


def is_array(value: Any) -> bool:
    """Whether an argument is data, not an option."""
    return isinstance(value, np.ndarray | np.generic | float | list) or hasattr(value, "__array__")


@functools.cache
def _compiled(fun: Callable[..., Any], static: tuple[str, ...], mutates: bool) -> JitFunction[..., Any]:
    return JitFunction(fun, static_argnames=static, mutates=mutates)


def _hashable(option: Any) -> Any:
    """Lists of numbers, such as kernel sizes, as tuples."""
    return tuple([_hashable(item) for item in option]) if type(option) in (list, tuple) else option
