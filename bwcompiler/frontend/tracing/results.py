"""Results of `bw.jit` functions that are no arrays of known shape: what a mask selects, texts and types, lists with as many elements as
data says, one thing of several.  They are nodes of the tree of results, from whose arrays (all elements and the mask) each call makes what
the function returned.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.errors import TracerError, at
from bwcompiler.frontend.tracing.masked_selection import Selection
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.source import current_source

_FIXED = (str, bytes, type, np.dtype)              # of which there is one for all calls of a program


class _Fixed:
    """Something that is the same in each call."""

    def __init__(self, value: Any) -> None:
        self.value = value


class _Selected:
    """What a mask selects: all elements, the mask, and how many axes are in front of those of the mask."""

    def __init__(self, whole: Any, mask: Any, lead: int) -> None:
        self.parts = (whole, mask)
        self.lead = lead


def _taken(lead: int, parts: Any) -> Any:
    whole, mask = parts
    if not isinstance(whole, np.ndarray) or not isinstance(mask, np.ndarray):
        return _Selected(whole, mask, lead)        # numbers of results in their place
    return np.ascontiguousarray(whole[(slice(None),) * lead + (mask,)])


class Gapped:
    """A list of elements, each with whether it is there."""

    def __init__(self, items: tuple[Any, ...]) -> None:
        self.items = items


class Element:
    """An element of such a list."""

    def __init__(self, present: Any, value: Any) -> None:
        self.parts = (present, value)


class Chosen:
    """One of several things, by the number of its place; with a negative one, the value."""

    def __init__(self, which: Any, value: Any, things: Any) -> None:
        self.parts = (which, value)
        self.things = things


def _chosen(things: Any, parts: Any) -> Any:
    which, value = parts
    if not isinstance(which, np.integer):
        return Chosen(which, value, things)        # numbers of results in their place
    return value if which < 0 else things.things[which]


def _those_there(kind: type, items: Any) -> Any:
    if any(type(item) is Element and not isinstance(item.parts[0], bool | np.bool_) for item in items):
        return Gapped(tuple(items))
    return kind([item.parts[1] if type(item) is Element else item for item in items if type(item) is not Element or item.parts[0]])


@functools.cache
def _register() -> None:
    tree.register_pytree_node(_Fixed, lambda node: ((), node.value), lambda value, _: value)
    tree.register_pytree_node(_Selected, lambda node: (node.parts, node.lead), _taken)
    tree.register_pytree_node(Gapped, lambda node: (node.items, list), _those_there)
    tree.register_pytree_node(Chosen, lambda node: (node.parts, node.things), _chosen)
    tree.register_pytree_node(Element, lambda node: (node.parts, None), lambda _, parts: Element(*parts))


def as_nodes(result: Any) -> Any:
    """The result of a function with such nodes in the place of what cannot be an output."""
    _register()
    result = HANDLERS["opened_result"](result)
    leaves, structure = tree.flatten(result)
    if not any(isinstance(leaf, (Selection, *_FIXED)) for leaf in leaves):
        return result
    return tree.unflatten(structure, [_node(leaf) for leaf in leaves])


def _node(leaf: Any) -> Any:
    if isinstance(leaf, Selection):
        return _Selected(leaf.array, leaf.where, leaf.lead)
    if isinstance(leaf, str) and ("<traced " in leaf or "\0" in leaf):
        raise TracerError(at(current_source(), f"the result holds {leaf!r}, a text of traced numbers, which are not known while tracing\n"
                             "  hint: return the numbers, and make the text of the result"))
    return _Fixed(leaf) if isinstance(leaf, _FIXED) else leaf
