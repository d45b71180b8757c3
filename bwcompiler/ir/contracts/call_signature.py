"""How a call's Python objects map to the buffers of a program (`program_interface.py`).

One program serves many call forms: the same arguments by position or by keyword, as arrays or as Python numbers, with
other static values.  A `CallSignature` describes one form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Literal, NamedTuple

import numpy as np

from bwcompiler.errors import DTypeError
from bwcompiler.ir.contracts.plain_objects import in_slot
from bwcompiler.ir.types import TensorType, dtype_of, tensor

# The kind of an argument leaf.  "array": exact np.ndarray of any memory layout (see `CallSignature.layouts`).
# "scalar": a NumPy scalar (np.float64).  "float", "int", "bool", "complex": exact Python numbers, seen by the program as
# 0-d values of the leaf's dtype.
ArgumentKind = Literal["array", "scalar", "float", "int", "bool", "complex"]
ResultKind = Literal["array", "scalar"]  # "scalar": a NumPy scalar is returned for a 0-d value
ContainerKind = Literal["tuple", "list", "dict", "none", "instance"]

# Strides in bytes that an array must have; "C": C-contiguous; None: any, and it is copied if it is not C-contiguous.
Layout = tuple[int, ...] | Literal["C"] | None


@dataclass(frozen=True, slots=True)
class Leaf:
    """Argument leaf or result number `index`."""

    index: int

    def __str__(self) -> str:
        return f"%{self.index}"


@dataclass(frozen=True, slots=True)
class Static:
    """A compile-time value, number `index` of the statics of a call: the argument must be identical, or equal (`is_plain`, `Contents`)."""

    index: int

    def __str__(self) -> str:
        return f"static {self.index}"


class Fixed:
    """A compile-time value that belongs to a container, compared as a static value is; in results, this object."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if type(other) is not Fixed or type(other.value) is not type(self.value):
            return False
        return same_plain(self.value, other.value) if is_plain(self.value) else bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(type(self.value))

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class Container:
    """An exact tuple, list, dict (its `keys`, in their order, are texts and integers) or None; a named tuple of the class `cls`; an object
    of the class `cls` (`is_plain_class`) with the attributes `keys` and no others, in any order, those of `extra` in this one."""

    kind: ContainerKind
    children: tuple[Tree, ...] = ()
    keys: tuple[str | int, ...] = ()
    cls: type | None = None
    extra: tuple[str, ...] = ()

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.children))
        if self.kind == "tuple":
            return f"{'' if self.cls is None else self.cls.__name__}({inner}{',' if len(self.children) == 1 else ''})"
        if self.kind == "list":
            return f"[{inner}]"
        if self.kind == "instance" and self.cls is not None:
            attributes = [f"{key}={child}" for key, child in zip(self.keys, self.children, strict=True)]
            return f"{self.cls.__name__}({', '.join(attributes)})"
        if self.kind == "dict":
            items = zip(self.keys, self.children, strict=True)
            return "{" + ", ".join(f"{key!r}: {child}" for key, child in items) + "}"
        return "None"


Tree = Leaf | Static | Fixed | Container


def leaf_indices(tree: Tree) -> tuple[int, ...]:
    """The leaves of `tree` from left to right."""
    return tuple([node.index for node in _nodes(tree) if isinstance(node, Leaf)])


def static_indices(tree: Tree) -> tuple[int, ...]:
    """The statics of `tree` from left to right."""
    return tuple([node.index for node in _nodes(tree) if isinstance(node, Static)])


def _nodes(tree: Tree) -> Iterator[Leaf | Static]:
    if isinstance(tree, Container):
        for child in tree.children:
            yield from _nodes(child)
    elif not isinstance(tree, Fixed):
        yield tree


def names_in_dict(tree: Container) -> tuple[str, ...]:
    """The attributes that an object has in its dict, `extra` last."""
    assert tree.cls is not None
    fields = [str(name) for name in tree.keys if name not in tree.extra and not in_slot(tree.cls, str(name))]
    return (*fields, *tree.extra)


def is_plain(value: object) -> bool:
    """Whether a static value is compared by type and value: numbers, strings and tuples of them.  Others are compared by identity."""
    if type(value) is tuple:
        return all(map(is_plain, value))
    return type(value) in (int, float, str, bytes, bool, complex, type(None))


def same_plain(x: object, y: object) -> bool:
    """Equal in type and value all the way down, with 0.0 and -0.0 apart and nan equal to itself."""
    if x is y:
        return True
    if type(x) is not type(y):
        return False
    if isinstance(x, tuple) and isinstance(y, tuple):
        return len(x) == len(y) and all(map(same_plain, x, y))
    if isinstance(x, float | complex):
        return repr(x) == repr(y)
    return x == y


class OfClass(NamedTuple):
    """Expectation of a `Read`: any object of a class that has instance attributes with these names."""

    cls: type
    names: frozenset[str]

    @classmethod
    def of(cls, value: Any) -> OfClass:
        """Objects like this one."""
        return cls(type(value), frozenset(getattr(value, "__dict__", ())))


class Contents:
    """Expected: any array in C order with this type and these bytes."""

    __slots__ = ("array", "type")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = np.array(array, order="C")
        self.array.flags.writeable = False         # a copy: the caller may write to the original
        self.type = tensor(dtype_of(array.dtype), array.shape)

    @classmethod
    def can_hold(cls, array: np.ndarray[Any, Any]) -> bool:
        """Whether the native entry can compare such arrays."""
        try:
            dtype_of(array.dtype)
        except DTypeError:
            return False
        return array.dtype.isnative and array.flags.c_contiguous

    def are_in(self, found: object) -> bool:
        return (type(found) is np.ndarray and found.dtype == self.array.dtype and found.shape == self.array.shape
                and found.flags.c_contiguous and found.flags.aligned and found.tobytes() == self.array.tobytes())


def is_expected(found: object, expected: object) -> bool:
    """Whether an object is the expected one, an equal plain value, an array of the expected contents, or of the expected class."""
    if type(expected) is Contents:
        return expected.are_in(found)
    if type(expected) is OfClass:
        return type(found) is expected.cls and OfClass.of(found) == expected
    return found is expected or (is_plain(expected) and same_plain(found, expected))


def items_of(container: Any) -> tuple[Any, ...]:
    """The items of a container in order; keys and values of a dict in turn."""
    return tuple([part for pair in container.items() for part in pair]) if hasattr(container, "items") else tuple(container)


FUNCTION_PARTS = ("__code__", "__defaults__", "__kwdefaults__")            # attributes of a function that can be replaced in place
NOTHING = object()             # the result of a read that finds nothing


class Read(NamedTuple):
    """A value outside of the arguments that tracing read, and that every call reads again first.

    kind      "global": base is a dict, key a name in it; "cell": base is a closure's cell; "attribute": of base, named
              key; "item": of the list base at position key; "entry": of the dict base under the string key; "size": the
              number of items of the list base; "keys": those of the dict base, in their order; "items": all items, of any
              container (a dict's as pairs); "bytes": the memory of the array base, of one axis and without gaps.
    base      may be a read itself, of the object that this finds.
    expected  the required result: an identical object, or an equal plain value (`is_plain`), or an object of a class (`OfClass`), or
              NOTHING; a tuple of these for "keys" and "items".
    tree      alternatively: the result is an operand of the program, with these argument leaves: a number, an array, or a container
              of these.
    """

    kind: Literal["global", "cell", "attribute", "item", "entry", "size", "keys", "items", "bytes"]
    base: Any
    key: Any
    expected: Any = None
    tree: Tree | None = None

    @property
    def place(self) -> tuple[str, Any, Any]:
        """The place that is read: equal for two reads of the same place."""
        return (self.kind, self.base.place if type(self.base) is Read else id(self.base), self.key)

    @property
    def owner(self) -> Any:
        """The present base."""
        return self.base.look() if type(self.base) is Read else self.base

    @property
    def is_followed(self) -> bool:
        """Whether its base is another read, or it expects a class: the native entry supports only fixed objects."""
        return type(self.base) is Read or type(self.expected) is OfClass or (self.expected is NOTHING and self.kind != "attribute")

    @property
    def is_of_function(self) -> bool:
        """Whether it reads the code or the defaults of a function, an implicit read of tracing."""
        return self.kind == "attribute" and type(self.base) is FunctionType and self.key in FUNCTION_PARTS

    def look(self) -> Any:
        """The present value; NOTHING if there is none."""
        base = self.owner
        try:
            match self.kind:
                case "cell":
                    return base.cell_contents
                case "attribute":
                    return getattr(base, self.key)
                case "size":
                    return len(base)
                case "keys":
                    return tuple(base)
                case "items":
                    return items_of(base)
                case "bytes":
                    return base.tobytes()
            return base[self.key]
        except (AttributeError, LookupError, ValueError, RuntimeError):        # RuntimeError: the container changed during iteration
            return NOTHING

    def holds(self) -> bool:
        """Whether the present value is the expected one."""
        found = self.look()
        if self.kind in ("keys", "items"):
            return type(found) is tuple and len(found) == len(self.expected) and all(map(is_expected, found, self.expected))
        return is_expected(found, self.expected)


@dataclass(frozen=True)
class CallSignature:
    """The arguments and results of a call form.  `str()` of it is a readable description.

    arguments       one tree per positional argument, then one per keyword argument.
    keywords        names of the last arguments, in the order of the call.
    argument_types  per leaf: those of the arguments in order, then those that are read from outside (`Read.tree`).
    layouts         per leaf, for arrays; empty: any layout.
    result          the tree of the returned value; results that are not in it are only written into arguments.
    result_into     per result: the argument leaf whose array receives it and is returned; both share one buffer.
                    Empty: none.
    alone           leaves, besides these, that must not share memory with other leaves or captured arrays.
    """

    arguments: tuple[Tree, ...]
    argument_types: tuple[TensorType, ...]
    argument_kinds: tuple[ArgumentKind, ...]
    captured_types: tuple[TensorType, ...] = ()
    result: Tree = field(default_factory=lambda: Container("none"))
    result_types: tuple[TensorType, ...] = ()
    result_kinds: tuple[ResultKind, ...] = ()
    arena_bytes: int = 0  # scratch after the error record
    release_gil: bool = False
    keywords: tuple[str, ...] = ()
    layouts: tuple[Layout, ...] = ()
    result_into: tuple[int | None, ...] = ()
    alone: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if all(leaf is None for leaf in self.result_into):
            object.__setattr__(self, "result_into", (None,) * len(self.result_types))
        if all(layout is None for layout in self.layouts):
            object.__setattr__(self, "layouts", (None,) * len(self.argument_types))
        self._check()

    def _check(self) -> None:
        leaves = [index for tree in self.arguments for index in leaf_indices(tree)]
        _require(sorted(leaves) == list(range(len(leaves))), "every argument leaf must appear once")
        _require(len(leaves) <= len(self.argument_types), "more leaves in the arguments than types")
        statics = [index for tree in self.arguments for index in static_indices(tree)]
        _require(sorted(statics) == list(range(len(statics))), "every static must appear once")
        _require(len(self.argument_kinds) == len(self.argument_types) == len(self.layouts), "one kind and layout per leaf")
        _require(len(self.keywords) <= len(self.arguments), "more keywords than arguments")
        returned = sorted(leaf_indices(self.result))
        hidden = {number for number, leaf in enumerate(self.result_into) if leaf is not None}
        _require(len(set(returned)) == len(returned) and set(returned) | hidden == set(range(len(self.result_types))),
                 "every result must appear once in the tree, or be written into an argument")
        for per_result in (self.result_kinds, self.result_into):
            _require(len(per_result) == len(self.result_types), "one entry per result")
        for kind, type_ in zip(self.argument_kinds, self.argument_types, strict=True):
            _require(kind == "array" or type_.shape == (), "scalars are 0-d")
        targets = [index for index in self.result_into if index is not None]
        _require(len(set(targets)) == len(targets), "two results written into one argument")
        for result, leaf in enumerate(self.result_into):
            if leaf is not None:
                _require(self.argument_kinds[leaf] == "array", "a result can only be written into an array")
                _require(self.argument_types[leaf] == self.result_types[result], "`out` is not of the result's type")

    @property
    def buffer_count(self) -> int:
        return len(self.argument_types) + len(self.captured_types) + len(self.result_types)

    @property
    def unshared(self) -> list[int]:
        """Leaves that must not share memory with other leaves or captured arrays."""
        return sorted({*self.alone, *[leaf for leaf in self.result_into if leaf is not None]})

    @property
    def static_count(self) -> int:
        return sum(len(static_indices(tree)) for tree in self.arguments)

    def __str__(self) -> str:
        names = [""] * (len(self.arguments) - len(self.keywords)) + [f"{name}=" for name in self.keywords]
        arguments = ", ".join(name + str(tree) for name, tree in zip(names, self.arguments, strict=True))
        lines = [f"call ({arguments}) -> {self.result}"]
        for index, (kind, type_) in enumerate(zip(self.argument_kinds, self.argument_types, strict=True)):
            layout = self.layouts[index]
            lines.append(f"  argument %{index}: {kind} {type_}{'' if layout is None else f' laid out {layout}'}")
        lines += [f"  captured {index}: {type_}" for index, type_ in enumerate(self.captured_types)]
        for index, (result_kind, type_) in enumerate(zip(self.result_kinds, self.result_types, strict=True)):
            into = self.result_into[index]
            lines.append(f"  result %{index}: {result_kind} {type_}{'' if into is None else f' into argument %{into}'}")
        lines.append(f"  arena {self.arena_bytes} B, GIL {'released' if self.release_gil else 'held'}")
        return "\n".join(lines)


def _require(condition: bool, rule: str) -> None:
    if not condition:
        raise ValueError(f"CallSignature: {rule}")
