"""A base class from networkx, which takes 0.1 s to import: `LateDiGraph` stands for `networkx.DiGraph` until that is needed.

The first use of networkx's interface (a method, iteration, an item) makes `networkx.DiGraph` the base.  So does creating a graph after
networkx was imported: then `isinstance(graph, networkx.DiGraph)` is true.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from bwcompiler.lazy import module
from bwcompiler.locks import renewed_properties

nx = module("networkx")


def with_networkx(graph: Any) -> Any:
    """Make the graph's class a subclass of networkx.DiGraph; returns the graph."""
    for cls in type(graph).__mro__:
        if cls.__bases__ == (LateDiGraph,):
            cls.__bases__ = (renewed_properties(nx.DiGraph),)
    return graph


class LateDiGraph:
    """Must be the only base of a class."""

    def __init_subclass__(cls) -> None:
        if "networkx" in sys.modules:
            cls.__bases__ = (renewed_properties(nx.DiGraph),)

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        graph = object.__new__(cls)
        return with_networkx(graph) if "networkx" in sys.modules else graph

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and not name.startswith("__networkx"):         # protocols that other libraries look up on every object
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(with_networkx(self), name)

    def __iter__(self) -> Iterator[Any]:
        return iter(with_networkx(self))

    def __contains__(self, node: object) -> bool:
        return node in with_networkx(self)

    def __getitem__(self, node: object) -> Any:
        return with_networkx(self)[node]
