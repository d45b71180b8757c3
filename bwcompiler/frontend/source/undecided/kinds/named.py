"""getattr() and setattr(), also by names that data choose: `getattr(model, "linear" if v < 0.4 else "square")(v)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bwcompiler.frontend.source.library.plain import attribute_or
from bwcompiler.frontend.source.undecided.kinds.choices import Choice, is_one_of_known, table
from bwcompiler.frontend.source.undecided.kinds.unbound import sure_attribute
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer


def _is_one_of_texts(name: Any) -> bool:
    return is_one_of_known(name) and all(isinstance(thing, str) for thing in name.options.things)


def get_attribute(x: Any, name: Any, *default: Any) -> Any:
    """getattr(x, name, default), which asks first where data say whether there is one."""
    if _is_one_of_texts(name):
        return table({thing: _attribute(x, thing, *default) for thing in name.options.things}, name)
    if default and isinstance(HANDLERS["has_attribute"](x, name), Tracer):
        return HANDLERS["call_of"](attribute_or)(x, name, *default)
    return getattr(x, name, *default) if default else sure_attribute(getattr(x, name), x, name)


def _attribute(x: Any, name: str, *default: Any) -> Any:
    return get_attribute(x, name, *default) if default else HANDLERS["attribute_of"](x, name)


def set_attribute(x: Any, name: Any, value: Any) -> None:
    """setattr(x, name, value): in a branch for each of the names that it may be."""
    if not _is_one_of_texts(name):
        setattr(x, name, value)
        return
    for place, thing in enumerate(name.options.things):
        HANDLERS["choose"](_is_it(name, place), _assignment(x, thing, value), lambda: None)


def _is_it(name: Choice, place: int) -> Any:
    return True if len(name.options.things) == 1 else name.which == place


def _assignment(x: Any, name: str, value: Any) -> Callable[[], None]:
    return lambda: setattr(HANDLERS["altered"](x), name, value)
