"""What `keys`, `values` and `items` of dictionaries with room give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bwcompiler.frontend.source.bounded.store import Bounded, refused
from bwcompiler.frontend.source.undecided.lists import gaps


class View(Bounded):
    """What `keys`, `values` and `items` give: what the dictionary holds when it is asked for."""

    def __init__(self, of: Any, kind: Any, part: Callable[[Any], Any]) -> None:
        self.of = of
        self.kind = kind
        self.store = of.store
        self.part = part

    def listed(self) -> list[Any]:
        return self.store.elements(self.part)

    in_any_order = listed

    def __iter__(self) -> Any:
        return iter(self.listed())

    def made_as(self) -> tuple[type, Any]:
        raise refused(f"the function returns a {self.kind.__name__}\n  hint: list() of it, or the dictionary")

    def contains(self, x: Any) -> Any:
        return self.of.contains(x) if self.kind is type({}.keys()) else gaps.contains(self.listed(), x)
