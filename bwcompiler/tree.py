"""Pytrees: nested containers of array leaves.  A facade over optree with this project's conventions.

None is an empty node, dict keys are sorted, plain dataclasses are nodes (registered when first seen; fields declared
with `field(metadata={"static": True})` belong to the structure, not to the leaves).  Other classes are nodes if they are registered.

A path is a tuple of entries: `entry.entry` is a key or an index, `entry.field` the name of a field (of dataclasses and named tuples).
`is_leaf(node)` says which containers are not taken apart.
"""

from __future__ import annotations

import builtins
import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from bwcompiler import lazy
from bwcompiler.locks import held_at_fork

if TYPE_CHECKING:
    import optree

    from bwcompiler import spellings
else:
    optree = lazy.module("optree")
    spellings = lazy.module("bwcompiler.spellings")

__all__ = [
    "all", "flatten", "flatten_with_path", "keystr", "leaves", "leaves_with_path", "map", "map_with_path", "match_prefix", "paths",
    "reduce", "register_dataclass", "register_pytree_node", "register_pytree_node_class", "structure", "treedef_paths", "treedef_text",
    "unflatten",
]

NAMESPACE = "bw"
_LEAVES = frozenset((float, int, bool, complex, str, type(None), np.ndarray, np.float64, np.int64))     # the most frequent ones
TreeDef: TypeAlias = "optree.PyTreeSpec"
IsLeaf: TypeAlias = "Callable[[Any], bool] | None"
Class = TypeVar("Class", bound=type)

_registering = held_at_fork()          # a class is known to optree and here, or to neither: for other threads, and in forked children
_registered: set[type] = set()         # by `register_pytree_node`
_fields: dict[type, tuple[tuple[str, ...], tuple[str, ...]]] = {}      # of the dataclasses that are nodes: leaves, and static ones


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree and its structure.

    >>> import bwcompiler as bw
    >>> bw.tree.flatten({"b": 1, "a": (2, 3)})[0]
    [2, 3, 1]
    >>> bw.tree.flatten({"b": 1, "a": (2, 3)}, is_leaf=lambda node: isinstance(node, tuple))[0]
    [(2, 3), 1]
    """
    while True:
        leaves, treedef = optree.tree_flatten(tree, is_leaf, namespace=NAMESPACE)
        unseen = {type(leaf) for leaf in leaves if _is_plain_dataclass(leaf)} - _fields.keys()
        if not unseen:
            return leaves, treedef
        for cls in sorted(unseen, key=lambda cls: cls.__qualname__):
            register_dataclass(cls)


def unflatten(treedef: TreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of that structure with those leaves.

    >>> import bwcompiler as bw
    >>> leaves, structure = bw.tree.flatten({"a": (1, 2)})
    >>> bw.tree.unflatten(structure, [10, 20])
    {'a': (10, 20)}
    """
    return treedef.unflatten(leaves)


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a tree, in order.

    >>> import bwcompiler as bw
    >>> bw.tree.leaves([1, {"x": 2, "y": None}])
    [1, 2]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: IsLeaf = None) -> TreeDef:
    """The structure of a tree; structures can be compared and are hashable.

    >>> import bwcompiler as bw
    >>> bw.tree.structure((1, 2)) == bw.tree.structure((3, 4))
    True
    """
    return flatten(tree, is_leaf)[1]


def map(fun: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """fun applied leaf by leaf; the other trees have at least the structure of the first, or ValueError is raised.

    >>> import bwcompiler as bw
    >>> bw.tree.map(lambda p, g: p - 0.5 * g, {"w": 1.0, "b": 2.0}, {"w": 2.0, "b": 2.0})
    {'w': 0.0, 'b': 1.0}
    """
    first, treedef = flatten(tree, is_leaf)
    return treedef.unflatten([fun(*parts) for parts in zip(first, *_parts(treedef, rest), strict=True)])


def _parts(treedef: TreeDef, others: Sequence[Any]) -> list[list[Any]]:
    """Of every other tree what is in the places of the leaves."""
    for other in others:
        flatten(other)                             # registers dataclasses
    return [treedef.flatten_up_to(other) for other in others]


def reduce(fun: Callable[[Any, Any], Any], tree: Any, initializer: Any = None, is_leaf: IsLeaf = None) -> Any:
    """fun(... fun(fun(first leaf, second), third) ..., last); an initializer comes before the first leaf.

    Raises TypeError for a tree without leaves and no initializer.

    >>> import bwcompiler as bw
    >>> bw.tree.reduce(lambda total, leaf: total + leaf, {"a": (1, 2), "b": 3}, 0)
    6
    """
    found = leaves(tree, is_leaf)
    return functools.reduce(fun, found) if initializer is None else functools.reduce(fun, found, initializer)


def all(tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true.

    >>> import bwcompiler as bw
    >>> bw.tree.all({"a": True, "b": (True, False)})
    False
    """
    return builtins.all(leaves(tree, is_leaf))


# ----- paths
def flatten_with_path(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[tuple[Any, Any]], TreeDef]:
    """Pairs (path, leaf), and the structure of the tree.

    >>> import bwcompiler as bw
    >>> pairs, _ = bw.tree.flatten_with_path({"a": (1, 2)})
    >>> [([entry.entry for entry in path], leaf) for path, leaf in pairs]
    [(['a', 0], 1), (['a', 1], 2)]
    """
    found, treedef = flatten(tree, is_leaf)
    return list(zip(treedef.accessors(), found, strict=True)), treedef


def leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[Any, Any]]:
    """Pairs (path, leaf), in order.

    >>> import bwcompiler as bw
    >>> [(bw.tree.keystr(path), leaf) for path, leaf in bw.tree.leaves_with_path({"a": (1, 2)})]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return flatten_with_path(tree, is_leaf)[0]


def map_with_path(fun: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """As `map`, of fun(path, leaf, *leaves of the others).

    >>> import bwcompiler as bw
    >>> decayed = lambda path, leaf: leaf if path[-1].entry == "bias" else 0.5 * leaf
    >>> bw.tree.map_with_path(decayed, {"weight": 2.0, "bias": 2.0})
    {'weight': 1.0, 'bias': 2.0}
    """
    pairs, treedef = flatten_with_path(tree, is_leaf)
    return treedef.unflatten([fun(*pair, *parts) for pair, *parts in zip(pairs, *_parts(treedef, rest), strict=True)])


def keystr(path: Any, *, simple: bool = False, separator: str = "") -> str:
    """A path as Python writes it behind the tree; simple: only its entries, with a separator.

    >>> import bwcompiler as bw
    >>> [(path, _)] = bw.tree.leaves_with_path({"layers": [1.0]})
    >>> bw.tree.keystr(path), bw.tree.keystr(path, simple=True, separator="/")
    ("['layers'][0]", 'layers/0')
    """
    return separator.join([str(getattr(entry, "field", entry.entry)) for entry in path]) if simple else str(path.codify(""))


def paths(tree: Any, root: str = "") -> list[str]:
    """For every leaf the Python expression that reaches it from `root`.

    >>> import bwcompiler as bw
    >>> bw.tree.paths({"a": (1, 2)}, "params")
    ["params['a'][0]", "params['a'][1]"]
    """
    return treedef_paths(structure(tree), root)


def treedef_paths(treedef: TreeDef, root: str = "") -> list[str]:
    """As `paths`, of a structure.

    >>> import bwcompiler as bw
    >>> bw.tree.treedef_paths(bw.tree.structure({"a": (1, 2)}), "params")
    ["params['a'][0]", "params['a'][1]"]
    """
    return [accessor.codify(root) for accessor in treedef.accessors()]


class _Leaf:
    def __repr__(self) -> str:
        return "*"


def treedef_text(treedef: TreeDef) -> str:
    """A structure as a text for people: the containers, with * in the places of leaves.

    >>> import bwcompiler as bw
    >>> bw.tree.treedef_text(bw.tree.structure({"a": (1, None)}))
    "{'a': (*, None)}"
    """
    try:
        return repr(treedef.unflatten([_Leaf()] * treedef.num_leaves))
    except Exception:                              # a class that looks at what it is made of
        return str(treedef)


def match_prefix(prefix: Any, whole: Any, root: str) -> list[tuple[Any, Any, str]]:
    """For every leaf of a prefix (None is one): itself, the part of `whole` in its place, and its path from `root`.

    Raises ValueError where a container of the prefix is not the same container in `whole`.

    >>> import bwcompiler as bw
    >>> bw.tree.match_prefix((0, None), ({"a": 1}, [2, 3]), "in_axes")
    [(0, {'a': 1}, 'in_axes[0]'), (None, [2, 3], 'in_axes[1]')]
    """
    flatten(prefix), flatten(whole)                # registers dataclasses
    if optree.tree_is_leaf(prefix, namespace=NAMESPACE, none_is_leaf=True):
        return [(prefix, whole, root)]
    mine = optree.tree_flatten_one_level(prefix, namespace=NAMESPACE)
    is_leaf = whole is None or optree.tree_is_leaf(whole, namespace=NAMESPACE)
    other = None if is_leaf or type(whole) is not type(prefix) else optree.tree_flatten_one_level(whole, namespace=NAMESPACE)
    if other is None or mine.entries != other.entries or mine.metadata != other.metadata:
        found = "None" if whole is None else "a leaf" if is_leaf else str(structure(whole))
        raise ValueError(f"{root} is {structure(prefix)}, where {found} is expected")
    level = structure(prefix).one_level()
    assert level is not None
    paths = [accessor.codify(root) for accessor in level.accessors()]
    return [row for one, part, path in zip(mine.children, other.children, paths, strict=True) for row in match_prefix(one, part, path)]


def key_orders(tree: Any) -> tuple[Any, ...]:
    """The keys of all dicts in a tree, in their order, with their types.  Structures are equal whatever these are, programs may not be."""
    found: list[Any] = []
    _note_key_orders(tree, found)
    return tuple(found)


def _note_key_orders(node: Any, found: list[Any]) -> None:
    kind = type(node)
    if kind is dict or (issubclass(kind, dict) and not optree.tree_is_leaf(node, namespace=NAMESPACE)):
        found.append((tuple(node), tuple([type(key) for key in node])))
        children: Iterable[Any] = node.values()
    elif kind is tuple or kind is list:
        children = node
    elif kind in _fields:
        dynamic, static = _fields[kind]
        more = [value for name, value in getattr(node, "__dict__", {}).items() if name not in dynamic and name not in static]
        children = [*[getattr(node, name) for name in dynamic], *more]
    elif optree.tree_is_leaf(node, namespace=NAMESPACE):
        return
    else:
        children = optree.tree_flatten_one_level(node, namespace=NAMESPACE).children
    for child in children:
        if type(child) not in _LEAVES:
            _note_key_orders(child, found)


# ----- classes that are containers
class _Statics:
    """The values of static fields, as they are compared: 1, 1.0 and True are different, so are 0.0 and -0.0."""

    __slots__ = ("values",)

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values

    def __eq__(self, other: object) -> bool:
        return type(other) is _Statics and _exact(self.values) == _exact(other.values)

    def __hash__(self) -> int:
        return hash(_exact(self.values))

    def __repr__(self) -> str:
        return repr(self.values)


def _exact(value: Any) -> Any:
    """Equal for values that are equal and of one type, all the way down."""
    if type(value) is tuple:
        return tuple([_exact(one) for one in value])
    return (type(value), repr(value) if type(value) in (float, complex) else value)


def register_dataclass(cls: Class, data_fields: Iterable[str] | None = None, meta_fields: Iterable[str] = ()) -> Class:
    """Make a dataclass a node of trees, and return it.  Dataclasses that are met are registered by themselves.

    data_fields  names of the fields that hold leaves; None: all but those declared with `field(metadata={"static": True})`, and attributes
                 that are no fields (which `__post_init__` may set).
    meta_fields  with data_fields: names of those that belong to the structure.  Others are not kept.

    Raises ValueError for a class that has been a node with other fields.

    >>> import bwcompiler as bw
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Point:
    ...     x: float
    ...     y: float
    >>> bw.tree.leaves(Point(1.0, 2.0))
    [1.0, 2.0]
    """
    if data_fields is None:
        fields = dataclasses.fields(cls)
        dynamic = tuple([field.name for field in fields if not field.metadata.get("static", False)])
        static = tuple([field.name for field in fields if field.metadata.get("static", False)])
    else:
        dynamic, static = tuple(data_fields), tuple(meta_fields)

    is_whole, known = data_fields is None, {*dynamic, *static}

    def take_apart(node: Any) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[str, ...]]:
        more = tuple([name for name in getattr(node, "__dict__", ()) if name not in known]) if is_whole else ()
        names = (*dynamic, *more)
        return tuple([getattr(node, name) for name in names]), (_Statics(tuple([getattr(node, name) for name in static])), more), names

    def put_together(metadata: Any, children: Iterable[Any]) -> Any:
        node: Any = object.__new__(cls)  # not the constructor: leaves may be anything, __post_init__ may check them
        statics, more = metadata
        for name, value in zip((*dynamic, *more, *static), (*children, *statics.values), strict=True):
            object.__setattr__(node, name, value)
        return node

    register, entry = optree.register_pytree_node, optree.DataclassEntry       # imports optree, which must not happen under the lock
    with _registering:
        if _fields.get(cls, (dynamic, static)) != (dynamic, static):
            raise ValueError(f"{cls.__name__} is a node already, with {_fields[cls][0]} as leaves; register it before it is used")
        if cls not in _fields:
            register(cls, take_apart, put_together, path_entry_type=entry, namespace=NAMESPACE)
            _fields[cls] = dynamic, static
    return cls


class Attributes(NamedTuple):
    """Names of an object's attributes: those that are part of the tree, those of them that are no fields, and the static fields."""

    names: tuple[str, ...]
    extra: tuple[str, ...]
    static: tuple[str, ...]


def attributes_of(node: Any) -> Attributes | None:
    """Of an object of a dataclass that has been met; None for others."""
    if type(node) not in _fields:
        return None
    level = optree.tree_flatten_one_level(node, namespace=NAMESPACE)
    metadata: Any = level.metadata
    return Attributes(level.entries, metadata[1], _fields[type(node)][1])


def register_pytree_node(cls: type, flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
                         unflatten_func: Callable[[Any, tuple[Any, ...]], Any]) -> None:
    """Make a class a node of trees.

    flatten_func    node -> (children, structure); the structure can be compared and is hashable.
    unflatten_func  structure, children -> node.  Children may be anything: traced arrays, None, numbers.

    Raises ValueError for a class that is a node already.

    >>> import bwcompiler as bw
    >>> class Line:
    ...     def __init__(self, slope, name):
    ...         self.slope, self.name = slope, name
    >>> bw.tree.register_pytree_node(Line, lambda line: ((line.slope,), line.name), lambda name, children: Line(*children, name))
    >>> bw.grad(lambda line, x: line.slope * x)(Line(2.0, "rising"), 3.0).slope.item()
    3.0
    """
    _make_node(cls, flatten_func, unflatten_func, False)


def register_once(cls: type, flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
                  unflatten_func: Callable[[Any, tuple[Any, ...]], Any]) -> None:
    """As `register_pytree_node`, of a class that may be a node already: in a child, if another thread made it one before the fork."""
    if cls not in _registered:
        _make_node(cls, flatten_func, unflatten_func, True)


def _make_node(cls: type, flatten_func: Callable[[Any], tuple[Iterable[Any], Any]], unflatten_func: Callable[[Any, tuple[Any, ...]], Any],
               again: bool) -> None:
    def take_apart(node: Any) -> tuple[tuple[Any, ...], Any, tuple[int, ...]]:
        children, metadata = flatten_func(node)
        children = tuple(children)
        return children, metadata, tuple(range(len(children)))

    register, entry = optree.register_pytree_node, optree.SequenceEntry
    with _registering:
        if not (again and cls in _registered):
            register(cls, take_apart, lambda metadata, children: unflatten_func(metadata, tuple(children)), path_entry_type=entry,
                     namespace=NAMESPACE)
            _registered.add(cls)


def register_pytree_node_class(cls: Class) -> Class:
    """As `register_pytree_node`, a decorator of a class with the methods tree_flatten(self) and tree_unflatten(cls, structure, children).

    >>> import bwcompiler as bw
    >>> @bw.tree.register_pytree_node_class
    ... class Scaled:
    ...     def __init__(self, array):
    ...         self.array = array
    ...     def tree_flatten(self):
    ...         return (self.array,), None
    ...     @classmethod
    ...     def tree_unflatten(cls, structure, children):
    ...         return cls(*children)
    >>> bw.tree.leaves(Scaled(1.0))
    [1.0]
    """
    node: Any = cls
    register_pytree_node(node, node.tree_flatten, node.tree_unflatten)
    return cls


def _is_plain_dataclass(leaf: Any) -> bool:
    return hasattr(type(leaf), "__dataclass_fields__") and not (hasattr(leaf, "shape") and hasattr(leaf, "dtype"))


if not TYPE_CHECKING:
    def __getattr__(name: str) -> Any:
        return spellings.missing("bw.tree", name, lambda: __all__)
