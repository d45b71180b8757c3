"""Which package a function belongs to, and whether that package's functions only compute."""

from __future__ import annotations

import types
from typing import Any

from bwcompiler.frontend.tracing.provenance.source import is_library

_PURE_MODULES = ("math", "cmath", "operator", "numpy", "scipy", "_operator", "bwcompiler", "copy", "dataclasses", "functools", "logging",
                 "typing", "typing_extensions")


def is_pure_module(function: Any) -> bool:
    return _package(function) in _PURE_MODULES


def wrapped_by_us(function: Any) -> Any:
    """The user's function inside of `bw.grad(fun)`, `bw.jit(fun)`, `bw.custom_vjp(fun)` ...; another function as it is."""
    while _package(type(function)) == "bwcompiler" or (isinstance(function, types.FunctionType) and is_library(function.__code__)):
        if not hasattr(function, "__wrapped__"):
            break
        function = function.__wrapped__
    return function


def _package(function: Any) -> str:
    return str(getattr(function, "__module__", "")).partition(".")[0]
