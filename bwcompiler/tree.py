"""Pytrees: nested containers of array leaves.  A facade over optree with this project's conventions.

None is an empty node, dict keys are sorted, plain dataclasses are nodes (registered when first seen; fields declared
with `field(metadata={"static": True})` belong to the structure, not to the leaves).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from bwcompiler import lazy

if TYPE_CHECKING:
    import optree
else:
    optree = lazy.module("optree")

NAMESPACE = "bw"
TreeDef: TypeAlias = "optree.PyTreeSpec"


def flatten(tree: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree and its structure.

    >>> import bwcompiler as bw
    >>> bw.tree.flatten({"b": 1, "a": (2, 3)})[0]
    [2, 3, 1]
    """
    while True:
        leaves, treedef = optree.tree_flatten(tree, namespace=NAMESPACE)
        unseen = {type(leaf) for leaf in leaves if _is_plain_dataclass(leaf)}
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


def leaves(tree: Any) -> list[Any]:
    """The leaves of a tree, in order.

    >>> import bwcompiler as bw
    >>> bw.tree.leaves([1, {"x": 2, "y": None}])
    [1, 2]
    """
    return flatten(tree)[0]


def structure(tree: Any) -> TreeDef:
    """The structure of a tree; structures can be compared and are hashable.

    >>> import bwcompiler as bw
    >>> bw.tree.structure((1, 2)) == bw.tree.structure((3, 4))
    True
    """
    return flatten(tree)[1]


def map(fun: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """fun applied leaf by leaf; the other trees have at least the structure of the first, or ValueError is raised.

    >>> import bwcompiler as bw
    >>> bw.tree.map(lambda p, g: p - 0.5 * g, {"w": 1.0, "b": 2.0}, {"w": 2.0, "b": 2.0})
    {'w': 0.0, 'b': 1.0}
    """
    first, treedef = flatten(tree)
    for other in rest:
        flatten(other)
    others = [treedef.flatten_up_to(other) for other in rest]
    return treedef.unflatten([fun(*parts) for parts in zip(first, *others, strict=True)])


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


def register_dataclass(cls: type) -> None:
    """Make a dataclass a node of trees.  Dataclasses that are met are registered by themselves.

    >>> import bwcompiler as bw
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Point:
    ...     x: float
    ...     y: float
    >>> bw.tree.leaves(Point(1.0, 2.0))
    [1.0, 2.0]
    """
    fields = dataclasses.fields(cls)
    dynamic = tuple(field.name for field in fields if not field.metadata.get("static", False))
    static = tuple(field.name for field in fields if field.metadata.get("static", False))

    def take_apart(node: Any) -> tuple[tuple[Any, ...], tuple[Any, ...], tuple[str, ...]]:
        children = tuple(getattr(node, name) for name in dynamic)
        return children, tuple(getattr(node, name) for name in static), dynamic

    def put_together(metadata: Any, children: Iterable[Any]) -> Any:
        node: Any = object.__new__(cls)  # not the constructor: leaves may be anything, __post_init__ may check them
        for name, value in zip((*dynamic, *static), (*children, *metadata), strict=True):
            object.__setattr__(node, name, value)
        return node

    optree.register_pytree_node(cls, take_apart, put_together, path_entry_type=optree.DataclassEntry,
                                namespace=NAMESPACE)


def _is_plain_dataclass(leaf: Any) -> bool:
    return hasattr(type(leaf), "__dataclass_fields__") and not (hasattr(leaf, "shape") and hasattr(leaf, "dtype"))
