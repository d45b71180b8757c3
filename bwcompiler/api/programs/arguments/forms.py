"""From Python arguments and results to the trees that the native entry walks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.tracing.boundary.arguments import Arguments
from bwcompiler.frontend.tracing.outside.kinds import is_named_tuple
from bwcompiler.ir.contracts.call_signature import ArgumentKind, Container, Fixed, Layout, Leaf, Static, Tree
from bwcompiler.ir.contracts.plain_objects import is_plain_class


def flat_tree(count: int) -> Tree:
    """A tuple of leaves 0..count-1."""
    return Container("tuple", tuple([Leaf(k) for k in range(count)]))


def argument_kind(leaf: Any) -> ArgumentKind | None:
    """How the native entry reads a leaf; None for values that it does not take (subclasses, lists)."""
    cls = type(leaf)
    if cls is np.ndarray:
        return "array"
    if cls is float:
        return "float"
    if cls is bool:
        return "bool"
    if cls is int:
        return "int"
    if cls is complex:
        return "complex"
    return "scalar" if isinstance(leaf, np.generic) else None


def argument_kinds(leaves: Sequence[Any]) -> tuple[ArgumentKind, ...] | None:
    """`argument_kind` of all leaves; None if the native entry does not take one of them."""
    kinds = [argument_kind(leaf) for leaf in leaves]
    found = tuple([kind for kind in kinds if kind is not None])
    return found if len(found) == len(kinds) else None


def signature_tree(value: Any) -> Tree | None:
    """A container of leaf numbers, static values and (in results) texts, types and dtypes as a tree of the runtime; None for containers
    that the native entry does not know."""
    if isinstance(value, int):
        return Leaf(value)
    if isinstance(value, Static):
        return value
    if value is None:
        return Container("none")
    if isinstance(value, str | bytes | type | np.dtype):
        return Fixed(value)
    if is_named_tuple(value):
        children = signature_trees(value)
        return None if children is None else Container("tuple", children, cls=type(value))
    if type(value) in (tuple, list):
        children = signature_trees(value)
        return None if children is None else Container("tuple" if type(value) is tuple else "list", children)
    if type(value) is dict and all(type(key) in (str, int) for key in value):
        children = signature_trees(list(value.values()))
        return None if children is None else Container("dict", children, tuple(value))
    return _object_tree(value)


def _object_tree(value: Any) -> Tree | None:
    """The tree of a dataclass whose objects are nothing but their attributes."""
    found = tree.attributes_of(value)
    if found is None:
        return None
    names, extra, static = found
    if not is_plain_class(type(value), names + static):
        return None
    children = signature_trees([getattr(value, name) for name in names])
    values = [getattr(value, name) for name in static]
    if children is None or not all(map(_is_hashable, values)):     # what cannot be hashed can be changed in place
        return None
    return Container("instance", (*children, *map(Fixed, values)), (*names, *static), type(value), extra)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except (TypeError, ValueError):
        return False
    return True


def signature_trees(values: Sequence[Any]) -> tuple[Tree, ...] | None:
    """The trees of all values; None if one has none."""
    found = [signature_tree(value) for value in values]
    trees = tuple([one for one in found if one is not None])
    return trees if len(trees) == len(found) else None


def argument_trees(arguments: Arguments, positional: int, keywords: Sequence[str]) -> tuple[Tree, ...] | None:
    """The trees of a call with `positional` positional arguments and these keywords, in the order of the call."""
    number = {position: k for k, position in enumerate(arguments.dynamic)}
    static = {position: k for k, position in enumerate(sorted(arguments.static))}
    marks: list[Any] = [number[position] if position in number else Static(static[position])
                        for position in range(len(arguments.leaves))]
    args, kwargs = tree.unflatten(arguments.treedef, marks)
    named = [kwargs[name] if name in kwargs else args[arguments.parameters.index(name)] for name in keywords]
    return signature_trees([*args[:positional], *named])


def layout_of(leaf: Any) -> Layout:
    """The layout of an array argument, for programs that depend on it."""
    if not isinstance(leaf, np.ndarray) or leaf.flags.c_contiguous:
        return "C"
    return leaf.strides
