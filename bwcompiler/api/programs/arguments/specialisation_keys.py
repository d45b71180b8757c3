"""The keys of specialisations, and a description of how two keys differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.tracing.boundary.arguments import Arguments, foreign_dtype, unwrapped
from bwcompiler.frontend.tracing.boundary.known_arrays import contents_key
from bwcompiler.ir.contracts.call_signature import is_plain


def specialisation_key(arguments: Arguments) -> Any:
    """The key of the specialisation for these arguments: their structure, types and static values, and the order of keys in dicts."""
    static = arguments.static
    return (arguments.treedef, tuple([
        static_key(unwrapped(leaf)) if position in static else _leaf_key(leaf) for position, leaf in enumerate(arguments.leaves)]),
        tree.key_orders((arguments.args, arguments.kwargs)))


class _Identity:
    """A key for a value that cannot be hashed: two are equal if they hold the same object."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def static_key(value: Any) -> Any:
    """A hashable key of a compile-time value, by type and value; by identity for what cannot be hashed."""
    if is_plain(value):
        return ("plain", type(value), repr(value))
    if type(value) is np.ndarray:
        return contents_key(value)
    try:
        hash(value)
    except (TypeError, ValueError):                # ValueError: a memoryview that can be written to
        return _Identity(value)
    return (type(value), value)


def _leaf_key(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray):
        return (leaf.dtype, leaf.shape) if type(leaf) is np.ndarray else (leaf.dtype, leaf.shape, type(leaf))
    if isinstance(leaf, np.generic):
        return (leaf.dtype, "scalar")
    if isinstance(leaf, bool | int | float | complex):
        return type(leaf)
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        return (foreign_dtype(leaf), tuple(leaf.shape), type(leaf).__name__)
    return type(leaf)


def difference(key: Any, other: Any, names: Sequence[str]) -> tuple[str, str]:
    """The first difference between two keys in words, and advice how to avoid it."""
    if other is None or key[0] != other[0]:
        return "the structure of the arguments differs", "pass lists and dicts of one length, or an array with room for all"
    for name, mine, others in zip(names, key[1], other[1], strict=True):
        if mine != others:
            return f"{name} is {_described(mine)} after {_described(others)}", _advice(name, mine)
    if key[2] != other[2]:
        return "the keys of a dict are in another order", "pass dicts with their keys in one order, as functions may go over them"
    return ("the memory layout of an argument, or something that the function reads from outside, differs",
            "pass arrays in C order, and pass values that change as arguments")


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, tuple) and isinstance(leaf[0], np.dtype)


def _is_contents(leaf: Any) -> bool:
    return isinstance(leaf, tuple) and isinstance(leaf[0], str) and leaf[0] == "contents"


def _advice(name: str, leaf: Any) -> str:
    """How to pass an argument that changes between calls without compiling again."""
    if _is_contents(leaf):
        return f"the numbers in {name} are compiled in, such as sizes: masks, np.where and sums with where= take numbers that change"
    if isinstance(leaf, type) or _is_array(leaf):
        return "pad arrays to a few shapes, and pass numbers and arrays of one dtype"
    if isinstance(leaf, tuple) and leaf[:2] in (("plain", int), ("plain", float)):
        return (f"{name} is static, or its value is needed while tracing (a size, an axis, a range): bw.fori_loop and masks take numbers "
                "that change")
    return f"{name} is compiled in: pass values that change as numbers or arrays"


def _described(leaf: Any) -> str:
    if isinstance(leaf, type):
        return f"a Python {leaf.__name__}"
    if _is_contents(leaf):
        return f"an array of other numbers, {leaf[1]}{list(leaf[2])}"
    if isinstance(leaf, tuple) and leaf[0] == "plain":
        return str(leaf[2])
    if isinstance(leaf, tuple) and isinstance(leaf[0], type):
        return repr(leaf[1])
    if _is_array(leaf):
        return f"{leaf[0]}{list(leaf[1]) if isinstance(leaf[1], tuple) else ' scalar'}"
    return repr(leaf)
