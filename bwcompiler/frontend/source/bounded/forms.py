"""What the elements of a container with room are like: trees of numbers, arrays, and choices in the place of texts and other known things.

A pattern is an element with a `Leaf` in the place of each number.  Where elements have a text, None, or a member of an enumeration, a
pattern has a `Choice` of all that were met there, so that elements with other ones have the same structure, and a number says which it is.
Patterns of two elements are covered by one that is for both.  The plan of a container keeps its structure and the kinds of its leaves.
"""

from __future__ import annotations

import enum
import functools
import math
import types
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from bwcompiler import tree
from bwcompiler.frontend.source.array_backed.boxes import Box, Text
from bwcompiler.frontend.source.effects.places import is_plain_object
from bwcompiler.frontend.source.undecided.kinds.choices import ABSENT, Choice, Options, is_known, is_unsure, joined, number_in, renumbered
from bwcompiler.frontend.source.undecided.kinds.orders import in_order
from bwcompiler.frontend.source.undecided.lists.gaps import Block
from bwcompiler.frontend.source.variables import is_number
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer

Kind: TypeAlias = "tuple[Any, str, tuple[int, ...]]"        # Python's type of a number, or None; dtype and shape
Form: TypeAlias = "tuple[tree.TreeDef, list[Kind]]"

INT, FLOAT, BOOL, WHICH = (int, "int64", ()), (float, "float64", ()), (None, "bool", ()), (None, "int64", ())
MOST = 50                      # things in one place


class NoElement(Exception):
    """Something cannot be an element, or not together with others."""


class Leaf:
    """A number or array of an element."""

    __slots__ = ("kind",)

    def __init__(self, kind: Kind) -> None:
        self.kind = kind


def can_be_leaf(x: Any) -> bool:
    """Whether it is a real number, or an array of real numbers whose shape is known."""
    if isinstance(x, Tracer) and x._type.shape:
        return x._type.is_fixed and x.dtype.kind in "biuf"
    return is_number(x) and not np.iscomplexobj(x)


def kind_of(leaf: Any) -> Kind:
    """Python's type of a number, or None; dtype and shape."""
    if isinstance(leaf, Tracer):
        kind = leaf._kind if leaf._kind in (int, float) else None
        return kind, str(leaf.dtype), tuple(leaf.shape)
    if isinstance(leaf, int | float) and not isinstance(leaf, np.generic):
        return BOOL if type(leaf) is bool else INT if type(leaf) is int else FLOAT
    return None, str(np.asarray(leaf).dtype), np.shape(leaf)


def pattern(structure: tree.TreeDef, kinds: Sequence[Kind]) -> Any:
    """The pattern of a form."""
    return tree.unflatten(structure, list(map(Leaf, kinds)))


def form_of(pattern: Any) -> Form:
    """The structure of a pattern, and the kinds of its leaves: what is kept for when the function is traced again."""
    _require_lasting(pattern)
    return tree.structure(pattern), [leaf.kind for leaf in tree.leaves(pattern)]


def _require_lasting(pattern: Any) -> None:
    """The known things of a pattern are the same when the function is traced again: objects that it makes are not."""
    if type(pattern) is Choice:
        for thing in pattern.options.things:
            is_made = is_plain_object(thing) and not isinstance(thing, enum.Enum)
            if is_made or isinstance(thing, types.MethodType) or "<locals>" in getattr(thing, "__qualname__", ""):
                raise NoElement(f"a {type(thing).__name__} that the function makes")
        _require_lasting(pattern.value)
    for part in pattern.parts if type(pattern) is Box else pattern if isinstance(pattern, tuple) else ():
        _require_lasting(part)


def pattern_of(x: Any) -> Any:
    """What an element is like, which is boxed."""
    x = _sure(x)
    if type(x) is Leaf:
        return x
    if type(x) is Choice:
        return joined(Leaf(WHICH), pattern_of(x.value) if x.has_value else None, x.options, x.has_value)
    if isinstance(x, tuple):
        return _rebuilt(x, map(pattern_of, x))
    if type(x) is Box:
        return Box(list(map(pattern_of, x.parts)), x.form)
    if is_known(x):
        return joined(Leaf(WHICH), None, Options([x]), False)
    if not can_be_leaf(x):
        raise NoElement(f"a {type(x).__name__}")
    return Leaf(kind_of(x))


def different(pattern: Any) -> int | None:
    """How many elements of a pattern differ from one another at most; None where data give them numbers."""
    if type(pattern) is Choice and not pattern.has_value:
        return len(pattern.options.things)
    if not isinstance(pattern, tuple):
        return None
    counts = [count for part in pattern if (count := different(part)) is not None]
    return math.prod(counts) if len(counts) == len(pattern) else None


def made_alike(items: Sequence[Any]) -> list[Any] | None:
    """Elements, boxed, and blocks of them, all of one structure: these, or the values of the blocks; None where there is none for all."""
    try:
        found = functools.reduce(covering, [pattern_of_rows(one) if type(one) is Block else pattern_of(one) for one in items])
    except NoElement:
        return None
    return [fitted(one.value, found, one.count) if type(one) is Block else fitted(one, found) for one in items]


HANDLERS["made_alike"] = made_alike


def pattern_of_rows(block: Block) -> Any:
    """The pattern of what is in a block."""
    leaves = [(kind, str(leaf.dtype), tuple(leaf.shape[1:])) for kind, leaf in zip(block.kinds, tree.leaves(block.value), strict=True)]
    return pattern_of(pattern(tree.structure(block.value), leaves))


def _sure(x: Any) -> Any:
    """x; a text as such; the value of a variable that might have had none."""
    if type(x) is Choice and is_unsure(x):
        return HANDLERS["sure"](x)
    return x.text if type(x) is Text else x


def _rebuilt(x: tuple[Any, ...], parts: Any) -> Any:
    return type(x)(*parts) if hasattr(type(x), "_fields") else tuple(parts)


def kinds_in(pattern: Any) -> set[type]:
    """The classes of objects and named tuples in a pattern."""
    if type(pattern) is Choice:
        return kinds_in(pattern.value) if pattern.has_value else set()
    if type(pattern) is not Box and not isinstance(pattern, tuple):
        return set()
    parts: Any = pattern.parts if type(pattern) is Box else pattern
    return {pattern.form.kind if type(pattern) is Box else type(pattern)}.union(*map(kinds_in, parts))


def renewed(one: Any, other: Any, met: set[type]) -> Any:
    """A pattern, of an earlier attempt to trace the function, with the classes that it has made anew since, as another pattern has them.

    met: classes that are there now.
    """
    def is_anew(old: type, new: type) -> bool:
        return old is not new and old not in met and (old.__module__, old.__qualname__) == (new.__module__, new.__qualname__)
    if type(one) is Choice and one.has_value:
        value = other.value if type(other) is Choice and other.has_value else other
        return joined(one.which, renewed(one.value, value, met), one.options, True)
    if type(one) is Box and type(other) is Box and len(one.parts) == len(other.parts):
        form = other.form if one.form.keys == other.form.keys and is_anew(one.form.kind, other.form.kind) else one.form
        return Box([renewed(*both, met) for both in zip(one.parts, other.parts, strict=True)], form)
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return _rebuilt(other if is_anew(type(one), type(other)) else one, [renewed(*both, met) for both in zip(one, other, strict=True)])
    return one


def covering(one: Any, other: Any) -> Any:
    """The pattern of elements that are like one or the other of two patterns."""
    if Choice in (type(one), type(other)):
        return _covering_choice(*[x if type(x) is Choice else joined(Leaf(WHICH), x, Options([]), True) for x in (one, other)])
    if type(one) is not type(other) or (isinstance(one, tuple) and len(one) != len(other)) or (
            type(one) is Box and one.form != other.form):
        raise NoElement("elements of different structures")
    if isinstance(one, tuple):
        return _rebuilt(one, map(covering, one, other))
    if type(one) is Box:
        return Box(list(map(covering, one.parts, other.parts)), one.form)
    return Leaf(_kind_of_both(one.kind, other.kind))


def _kind_of_both(one: Kind, other: Kind) -> Kind:
    (kind, dtype, shape), (kind_too, dtype_too, shape_too) = one, other
    if shape != shape_too or (shape and dtype != dtype_too):
        raise NoElement(f"arrays of shapes {shape} and {shape_too}, {dtype} and {dtype_too},")
    both = float if {kind, kind_too} == {int, float} else kind if kind is kind_too else None
    return both, str(np.result_type(dtype, dtype_too)), shape


def _covering_choice(one: Choice, other: Choice) -> Choice:
    values = [x.value for x in (one, other) if x.has_value]
    value = covering(*values) if len(values) == 2 else values[0] if values else None
    options = Options(in_order([*one.options.things, *other.options.things]))
    if len(options.things) > MOST:
        raise NoElement(f"more than {MOST} different texts or functions")
    return joined(Leaf(WHICH), value, options, bool(values))


def fitted(x: Any, pattern: Any, count: int | None = None) -> Any:
    """An element, or the columns of so many, with choices where the pattern has them."""
    x = _sure(x)
    if type(pattern) is Choice:
        assert type(x) is not Choice or ABSENT not in map(pattern.options.place, x.options.things)
        return _fitted_choice(x, pattern, count)
    if isinstance(x, tuple):
        return _rebuilt(x, [fitted(part, like, count) for part, like in zip(x, pattern, strict=True)])
    if type(x) is Box:
        return Box([fitted(part, like, count) for part, like in zip(x.parts, pattern.parts, strict=True)], x.form)
    return x


def sought(x: Any, pattern: Any) -> list[Any] | None:
    """The leaves of what an element is compared with, which has the pattern of others; None where no such element is equal to it."""
    x = _sure(x)
    if any(np.shape(leaf) for leaf in tree.leaves(x)):
        raise TypeError("unhashable type: 'numpy.ndarray'")
    if isinstance(x, tuple) or isinstance(pattern, tuple):
        if not isinstance(x, tuple) or not isinstance(pattern, tuple) or len(x) != len(pattern):
            return None
        parts = [sought(part, like) for part, like in zip(x, pattern, strict=True)]
        return None if None in parts else [leaf for part in parts for leaf in part or ()]
    if (type(pattern) is Choice and pattern.has_value) or (type(x) is Choice and x.has_value):
        raise NoElement("numbers and texts, or None, in one place of keys")
    is_thing = type(x) is Choice or is_known(x)
    if is_thing != (type(pattern) is Choice):
        return None
    return tree.leaves(_fitted_choice(x, pattern, None)) if is_thing else [x]


def _fitted_choice(x: Any, pattern: Choice, count: int | None) -> Choice:
    if type(x) is Choice:
        which, value = renumbered(x.which, x.options, pattern.options), x.value
    else:
        which, value = number_in(x, pattern.options), None if is_known(x) else x
        which = which if count is None else np.full(count, which)
    if pattern.has_value:
        value = _nothing(pattern.value, count) if value is None else fitted(value, pattern.value, count)
    return joined(which, value, pattern.options, pattern.has_value)


def _nothing(pattern: Any, count: int | None) -> Any:
    """In the place of a value that is not there."""
    def zeros(leaf: Leaf) -> Any:
        kind, dtype, shape = leaf.kind
        if kind is not None and count is None:
            return kind(0)
        return np.zeros(shape if count is None else (count, *shape), dtype)[()]
    return tree.map(zeros, pattern)
