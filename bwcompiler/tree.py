"""Pytrees: nested containers of array leaves.  A facade over optree with this project's conventions.

None is an empty node, dict keys are sorted, plain dataclasses are nodes (registered when first seen; fields declared
with `field(metadata={"static": True})` belong to the structure, not to the leaves).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import optree

NAMESPACE = "bw"
TreeDef: TypeAlias = optree.PyTreeSpec


def flatten(tree: Any) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree and its structure."""
    while True:
        leaves, treedef = optree.tree_flatten(tree, namespace=NAMESPACE)
        unseen = {type(leaf) for leaf in leaves if _is_plain_dataclass(leaf)}
        if not unseen:
            return leaves, treedef
        for cls in sorted(unseen, key=lambda cls: cls.__qualname__):
            register_dataclass(cls)


def unflatten(treedef: TreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of that structure with those leaves."""
    return treedef.unflatten(leaves)


def leaves(tree: Any) -> list[Any]:
    """The leaves of a tree, in order."""
    return flatten(tree)[0]


def structure(tree: Any) -> TreeDef:
    """The structure of a tree."""
    return flatten(tree)[1]


def map(fun: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """fun applied leaf by leaf; the other trees have at least the structure of the first."""
    first, treedef = flatten(tree)
    for other in rest:
        flatten(other)
    others = [treedef.flatten_up_to(other) for other in rest]
    return treedef.unflatten([fun(*parts) for parts in zip(first, *others, strict=True)])


def paths(tree: Any, root: str = "") -> list[str]:
    """For every leaf the Python expression that reaches it from `root`: `params['b'].w`."""
    return treedef_paths(structure(tree), root)


def treedef_paths(treedef: TreeDef, root: str = "") -> list[str]:
    """As `paths`, of a structure."""
    return [accessor.codify(root) for accessor in treedef.accessors()]


def register_dataclass(cls: type) -> None:
    """Make a dataclass a node of trees."""
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
