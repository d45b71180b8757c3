"""Calls of the handlers for NumPy's functions and operators: the values they record and the errors they raise get the user's line, and
results have NumPy's memory order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bwcompiler.errors import BwError, located
from bwcompiler.frontend.tracing.handles import Handle, value_of
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.refusals.fixed_extents import require_fixed
from bwcompiler.frontend.tracing.registry import HANDLERS, Entry, call_entry, lookup
from bwcompiler.frontend.tracing.storages.memory_order import RepeatedCall, unknown
from bwcompiler.frontend.tracing.storages.region import Storage, _state, open_region, storage_numbers


def call(handler: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a handler: its values and errors get the user's line.  A selection that it gives has a size, where sizes are assumed."""
    region = _state.region or open_region(_some_storage(args))
    policy = region.policy
    if policy is None or not policy.assumes or region.record.source is not None:
        return call_within(handler, *args, **kwargs)
    return call_within(lambda: HANDLERS["of_assumed_sizes"](handler(*args, **kwargs)))


def call_within(handler: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Likewise, for callers that take selections for what they are."""
    region = _state.region or open_region(_some_storage(args))
    record = region.record
    if record.source is not None:       # called by another handler
        return handler(*args, **kwargs)
    record.source = source = current_source(region.outer, region.observer)
    try:
        return handler(*args, **kwargs)
    except (BwError, ValueError, TypeError, IndexError) as error:
        raise located(error, source) from None
    finally:
        record.source = None


def call_back(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a function of the user's inside of a handler, as if it were called outside: what it calls is not part of the handler."""
    record = open_region().record
    source, record.source = record.source, None
    try:
        return function(*args, **kwargs)
    finally:
        record.source = source


def _some_storage(args: tuple[Any, ...]) -> Storage | None:
    flat = [item for arg in args for item in (arg if isinstance(arg, tuple | list) else (arg,))]
    return next((arg._storage for arg in flat if isinstance(arg, Handle)), None)


def call_numpy(function: Any, operands: Sequence[Any], options: dict[str, Any], handler: Callable[..., Any], *args: Any,
               **kwargs: Any) -> Any:
    """Run a handler for `function(*operands, **options)`; the results lie in memory as those of the function itself."""
    region = _state.region
    if region is None or region.record.source is not None:
        return call(handler, *args, **kwargs)
    require_fixed(function, (*operands, *options.values()))
    start = next(storage_numbers)
    options = dict(options)                                 # handlers take keywords out of the dictionary
    result = call(handler, *args, **kwargs)
    found = _new_arrays(result, (), start)
    return lying_as(result, found, function, operands, options) if found else result


def lying_as(result: Any, found: Sequence[tuple[Handle, tuple[int, ...]]], function: Any, operands: Sequence[Any],
             options: dict[str, Any]) -> Any:
    """The result, the new arrays `found` in it lying in memory as those of the function."""
    repeated = RepeatedCall(function, operands, options)
    for handle, path in found:
        if not all(step.writable for step in handle._chain):
            handle._storage.layout = unknown(f"an operand of {getattr(function, '__name__', 'a function')}")
            continue
        _own_storage(handle)
        handle._storage.layout = repeated.layout(path, handle._type.shape)  # type: ignore[arg-type]
    return result


def _new_arrays(result: Any, path: tuple[int, ...], start: int) -> list[tuple[Handle, tuple[int, ...]]]:
    """The handles of storages made since `start`, with their places in the result."""
    if isinstance(result, Handle):
        return [(result, path)] if result._type.shape and result._storage.number > start else []
    if isinstance(result, tuple | list):
        return [pair for place, part in enumerate(result) for pair in _new_arrays(part, (*path, place), start)]
    return []


def _own_storage(handle: Handle) -> None:
    """A result that is a view of something its function made gets a storage that has its own shape."""
    if handle._chain:
        value = value_of(handle)
        handle._storage, handle._chain = Storage(handle._storage.region, value), ()


def call_function(function: Any, *args: Any, **kwargs: Any) -> Any:
    """Run what stands for a NumPy function."""
    return run_entry(function, lookup(function), args, kwargs)


def run_entry(function: Any, entry: Entry, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run what was looked up for a NumPy function, or a method of arrays."""
    if entry.states_layout:
        require_fixed(function, (*args, *kwargs.values()))
        return call(call_entry, entry, args, kwargs)
    return call_numpy(function, args, kwargs, call_entry, entry, args, kwargs)
