"""What NumPy says of divisions by zero, overflows and invalid operations: nothing, in compiled code.  So a program must not ask for it.

`np.errstate(divide="raise")` and `warnings.simplefilter("error")` make errors of it, of which a `try` around is noted; the list of
`warnings.catch_warnings(record=True)` cannot be read.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import UnsupportedError, at
from bwcompiler.frontend.source.variables import open_policy
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.ir.op import Value

_SILENT = frozenset((ops.cast, ops.negative, ops.absolute, ops.select, ops.maximum, ops.minimum, ops.conjugate, ops.real, ops.imag,
                     ops.floor, ops.ceil, ops.sign))


def numpy_errors() -> set[type[Exception]]:
    """What NumPy raises, by np.errstate or np.seterr."""
    return {FloatingPointError} if "raise" in np.geterr().values() else set()


def numpy_warnings() -> set[type[Exception]]:
    """What Python raises for warnings, of what is caught by its name: in tests, all warnings are errors."""
    for action, message, category, module, _ in warnings.filters:
        if issubclass(RuntimeWarning, category) and message is module is None:
            return {RuntimeWarning} if action == "error" else set()
    return set()


def _setting(function: Any) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        if "raise" in (*args, *kwargs.values()):
            _note(FloatingPointError)
        return function(*args, **kwargs)
    return called


def _filtering(function: Any) -> Callable[..., Any]:
    def called(action: str, *args: Any, **kwargs: Any) -> Any:
        if action == "error":
            _note(RuntimeWarning)
        return function(action, *args, **kwargs)
    return called


def _note(error: type[Exception]) -> None:
    policy = open_policy()
    for one in () if policy is None else policy.tries:
        one.raised.add(error)


class _Recording(warnings.catch_warnings):
    """warnings.catch_warnings(record=True), of which the list is not to be read."""

    def __init__(self, **options: Any) -> None:
        super().__init__(record=True, **options)

    def __enter__(self) -> Any:
        super().__enter__()
        return _Warnings()


class _Warnings:
    """Stands for the list of what NumPy warned of."""

    def _refuse(self, *_: Any) -> NoReturn:
        source = current_source(open_region().outer)
        raise UnsupportedError(at(source, "the warnings that were recorded are read: compiled code gives what NumPy gives, and warns of "
                                  "nothing\n  hint: test the operands (np.any(x == 0)), or the result (np.isfinite)"))

    __len__ = __iter__ = __getitem__ = __bool__ = __contains__ = __getattr__ = _refuse


def complaining(values: Sequence[Value]) -> Iterator[Value]:
    """Those of which NumPy may complain, those in loops and branches too."""
    for value in values:
        is_safe = value.op in _SILENT or not value.operands or value.op.kind != "elementwise"
        if not is_safe and (value.dtype.is_differentiable or value.op in (ops.floor_divide, ops.remainder)):
            yield value
        for region in value.op.regions:
            yield from complaining(value.attrs[region].body)


def caught(errors: Collection[type[Exception]], names: Collection[str]) -> str | None:
    """The name of what a handler is for that catches one of them."""
    return next((kind.__name__ for one in errors for kind in one.__mro__ if kind.__name__ in names), None)


def _catching(*, record: bool = False, **options: Any) -> Any:
    return _Recording(**options) if record else warnings.catch_warnings(**options)


ASKING: dict[Any, Callable[..., Any]] = {
    np.errstate: _setting(np.errstate), np.seterr: _setting(np.seterr), warnings.simplefilter: _filtering(warnings.simplefilter),
    warnings.filterwarnings: _filtering(warnings.filterwarnings), warnings.catch_warnings: _catching,
}
