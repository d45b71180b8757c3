"""Objects of the user's classes that are made in captured code: `instantiating` runs `__init__` with its control flow captured."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.source.effects.enclosing import bind
from bwcompiler.frontend.source.syntax.functions import form as form_of
from bwcompiler.frontend.source.variables import not_capturable
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.operands import is_traced
from bwcompiler.frontend.tracing.outside.kinds import is_hidden_type
from bwcompiler.frontend.tracing.policy import Policy
from bwcompiler.frontend.tracing.provenance.source import is_library
from bwcompiler.frontend.tracing.registry import HANDLERS


def is_plain_class(kind: type) -> bool:
    """Whether it is a class of the user's whose objects are made by its own `__init__` alone; also a class with abstract methods."""
    made = _class_function(kind)
    new: Any = kind.__new__
    init: Any = kind.__init__  # type: ignore[misc]
    mine = init is object.__init__ and not is_hidden_type(kind) if made is None else not is_library(made.__code__)
    makes: Any = type(kind).__call__
    return mine and new is object.__new__ and makes is type.__call__ and not issubclass(kind, BaseException)


def _class_function(kind: type) -> types.FunctionType | None:
    made = getattr(kind, "__init__", None)
    return made if isinstance(made, types.FunctionType) else None


def instantiating(kind: type, policy: Policy, form: Callable[[Any], Any]) -> Any:
    """kind(...), with the control flow of its `__init__` captured; the object is one of this iteration's own."""
    plain = _class_function(kind)
    if plain is None:                              # without an `__init__` of its own
        def make_empty() -> Any:
            found: Any = object.__new__(kind)
            policy.own_object(found)
            return found
        return make_empty
    is_generated = hasattr(kind, "__dataclass_fields__") and _is_generated(plain)
    if policy.depth and not is_generated:
        if not form_of(plain).is_known:
            not_capturable(f"it makes a {kind.__name__}, whose source is not to be had")
        if form_of(plain).writes_globals:
            not_capturable(f"{kind.__name__}.__init__() assigns to variables of its module")
        bind(plain)
    initialise = form(plain)
    begun: Any = _with_captured_end(kind) if is_generated and hasattr(kind, "__post_init__") else kind

    def make(*args: Any, **kwargs: Any) -> Any:
        found = object.__new__(begun)
        policy.own_object(found)
        initialise(found, *args, **kwargs)
        if begun is not kind:
            object.__setattr__(found, "__class__", kind)
        return found
    return make


def finishing(function: Any) -> Callable[..., None] | None:
    """The generated `__init__` of a dataclass that the `__init__` of a derived class calls, with its `__post_init__` captured."""
    plain = getattr(function, "__func__", function)
    if not _is_generated(plain):
        return None

    def initialise(*args: Any, **kwargs: Any) -> None:
        found = args[0] if plain is function else function.__self__
        kind = type(found)
        if hasattr(kind, "__post_init__"):
            object.__setattr__(found, "__class__", _with_captured_end(kind))
        try:
            function(*args, **kwargs)
        finally:
            object.__setattr__(found, "__class__", kind)
    return initialise


def _is_generated(init: types.FunctionType) -> bool:
    """Whether it is an `__init__` that @dataclass wrote."""
    return init.__name__ == "__init__" and init.__code__.co_filename == "<string>"


def of_arrays(kind: type) -> Callable[..., Any]:
    """kind(...), a class of the user's that is a subclass of np.ndarray; refused of traced values, which its memory cannot hold."""
    def make(*args: Any, **kwargs: Any) -> Any:
        if any(map(is_traced, (*args, *kwargs.values()))):
            call(_refuse_array_class, kind)
        return kind(*args, **kwargs)
    return make


def _refuse_array_class(kind: type) -> None:
    hint = "np.array(x), and x @ y for its x * y" if kind is np.matrix else (
        "a class that has the array as an attribute, self.x = np.array([...]); or functions of plain arrays")
    raise UnsupportedError(f"{kind.__name__} is a subclass of np.ndarray, which holds numbers: there are none while tracing\n"
                           f"  hint: {hint}")


def _with_captured_end(kind: Any) -> type:
    """A class like a dataclass of the user's, whose generated `__init__` calls its `__post_init__` with the control flow captured."""
    def captured(self: Any, *args: Any) -> None:
        call_of = HANDLERS["call_of"]
        call_of(types.MethodType(kind.__post_init__, self))(*args)
    made: type = type(kind)(kind.__name__, (kind,), {"__slots__": (), "__post_init__": captured, "__module__": kind.__module__,
                                                     "__qualname__": kind.__qualname__})
    return made
