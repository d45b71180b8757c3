"""Regions and storages: where values are recorded, and what arrays contain in each region.

A region is one function, or one body of a loop or branch, being traced; regions nest per thread.  A storage corresponds to the memory of
a NumPy array: handles (`tracer.Tracer`) share it, and a write gives it a new immutable value.  A region that uses
a storage of an enclosing region *lifts* it: the storage becomes an extra input of the region's graph.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NoReturn
from weakref import ReferenceType

import numpy as np

from bwcompiler.errors import BwError, EscapedTracerError, UnsupportedError, at
from bwcompiler.frontend.tracing.policy import Policy, Recapture, Site
from bwcompiler.frontend.tracing.provenance.source import FrameObserver, current_source
from bwcompiler.frontend.tracing.storages.contents import Contents
from bwcompiler.frontend.tracing.storages.memory_order import Layout
from bwcompiler.frontend.tracing.storages.views import Chain, shadow
from bwcompiler.ir.op import Record, Value, input_value
from bwcompiler.ir.source import Source
from bwcompiler.ir.types import TensorType, dtype_of, tensor

storage_numbers = itertools.count()


class Storage:
    """The memory behind one or more handles.

    value     what it holds, in the region that owns it; `inner` has what it holds in regions inside of that one.
    version   grows with every write, so that handles know that what they remember is stale.
    layout    how NumPy would have laid the array out in memory; None where nobody has said: C order, as all our own results.
    number    storages are numbered in the order in which they are made.
    links     arrays that are the same one where a traced truth value holds (`twins`): they are written to with it.
    undecided handles of which it is not decided yet whether they are views of this storage; each write decides it before.
    writable  False for the results that NumPy gives as immutable scalars.
    written   whether anything was ever written to it, in this region or inside of it.
    kept      whether a list holds a copy of it in the place of another name: it must not be written to (`source/carried/kept.py`).  The
                loop that appended it, which is to be unrolled where it is written to nevertheless; True where there is none.
    last_read, last_shadow  of the long chain of views that was followed last, (chain, where each step leads to, what that holds for):
                views of one of these go on from there.
    demandable  an integer or boolean argument, whose number can be had by tracing again (`StaticDemand`); a float, if all else was refused.
    """

    __slots__ = ("__weakref__", "demandable", "inner", "kept", "last_read", "last_shadow", "layout", "links",
                 "number", "region", "type", "undecided", "value", "version",
                 "writable", "written")

    def __init__(self, region: Region, value: Value) -> None:
        self.region = region
        self.value = value
        self.type: TensorType = value.type
        self.version: float = 0
        self.layout: Layout | None = None
        self.number = next(storage_numbers)
        self.undecided: list[ReferenceType[Any]] | None = None
        self.inner: dict[Region, Value] | None = None
        self.writable = True
        self.demandable = False
        self.links: list[Any] | None = None
        self.written = False
        self.kept: Site | bool = False
        self.last_read: tuple[Any, ...] = ()
        self.last_shadow: tuple[Any, ...] = ()


WRITTEN_TO_KEPT = ("an array is assigned to that was appended to a list, whose elements data decide, or given another name, as data "
                   "decide: compiled code has a copy there\n"
                   "  hint: append a copy, kept.append(x.copy()), or make a new array, x = x + y, where x += y assigns to elements")
LONG = 8                       # views of views from which on the last chain that was followed is remembered


def follow(storage: Storage, chain: Chain, base: Value, region: Region) -> Value:
    """What a chain of views leads to from `base`, which the storage holds in the region."""
    known = storage.last_read
    found: list[Value] = known[1][:_common(known[0], chain)] if known and known[2] is base and known[3] is region else []
    for step in chain[len(found):]:
        found.append(step.read(found[-1] if found else base))
    if len(chain) >= LONG:
        storage.last_read = (chain, found, base, region)
    return found[-1]


def shadow_of_chain(storage: Storage, chain: Chain) -> np.ndarray[Any, Any]:
    """The strided stand-in of a handle with this chain; its elements must never be read."""
    strides = None if storage.layout is None else storage.layout.strides()
    if len(chain) < LONG:
        return shadow(storage.type.shape, strides, chain)  # type: ignore[arg-type]
    known = storage.last_shadow
    found: list[np.ndarray[Any, Any]] = known[1][:_common(known[0], chain)] if known and known[2] == strides else []
    for step in chain[len(found):]:
        found.append(step.shadow(found[-1] if found else shadow(storage.type.shape, strides, ())))  # type: ignore[arg-type]
    storage.last_shadow = (chain, found, strides)
    return found[-1]


def _common(one: Chain, other: Chain) -> int:
    """With how many steps both chains begin, where they differ in the last ones at most; else 0."""
    most = min(len(one), len(other))
    return next((count for count in range(most, max(most - 4, 0), -1) if one[:count] == other[:count]), 0)


class StaticDemand(BaseException):
    """The function being traced asked integer arguments for their numbers: it has to be traced again with these as they are.

    Not an Exception, so that `except Exception` in the user's code does not swallow it.
    numbers  of the region's arguments that were asked for; `refusal` is the error where there are no numbers to give.
    """

    def __init__(self, region: Region, numbers: Sequence[int], source: Source | None, refusal: BwError) -> None:
        super().__init__(str(refusal))
        self.region = region
        self.numbers = numbers
        self.source = source
        self.refusal = refusal


class Region:
    """A function being traced: its record of values, its inputs, the arrays it captured and the storages it lifted.

    arguments  storages of the inputs, in order, with their inputs in `argument_inputs`; numbers: those of inputs of which they are known.
    passed     what the function was called with in the places of the first of these.
    captured   concrete arrays by reference, with their inputs in `capture_inputs`; touched: how often each was asked for, by its id.
    lifted     storages of enclosing regions, with their inputs in `lifted_inputs`.
    layouts_asked  numbers of the arguments whose memory order was asked for.
    refusal    the last error raised by a handle that was asked for a number; NumPy may hide it behind one of its own.
    demand     likewise the last demand for a number.
    observer   sees the user's frames while values are recorded; that of the outermost region.
    policy     how control flow is captured; that of the outermost region.
    site       of the loop whose body this is, where it was captured from source.
    outer      the user's line at which it was opened inside of another region, for errors; closed: it is traced, its handles are stale.
    shared     storages from outside of it, of which something was read in it that is another name of one of them, as data decide.
    left       where its values were left outside (`outside.before.Left`), once it is traced.
    checks     numbers that what the region gives waits for: whether user's exceptions are raised is known when they are there.
    """

    __slots__ = ("_capture_of", "_seen", "argument_inputs", "arguments", "capture_inputs", "captured", "checks", "closed", "demand",
                 "layouts_asked", "left", "lifted", "lifted_inputs", "name", "numbers", "observer", "outer", "parent", "passed", "policy",
                 "record", "refusal", "shared", "site", "touched")

    def __init__(self, name: str) -> None:
        self.name = name
        self.record = Record()
        self.parent: Region | None = None
        self.closed = False
        self.outer: Source | None = None
        self.refusal: BwError | None = None
        self.demand: StaticDemand | None = None
        self.observer: FrameObserver | None = None
        self.policy: Policy | None = None
        self.site: Site | None = None
        self.left: Any = None
        self.checks: list[Value] = []
        self.layouts_asked: set[int] = set()
        self.arguments: list[Storage] = []
        self.argument_inputs: list[Value] = []
        self.numbers: dict[Value, Any] = {}
        self.passed: Sequence[Any] = ()
        self.captured: list[np.ndarray[Any, Any]] = []
        self.touched: dict[int, int] = {}
        self.capture_inputs: list[Value] = []
        self.lifted: list[Storage] = []
        self.lifted_inputs: list[Value] = []
        self.shared: set[Storage] = set()
        self._capture_of: dict[int, int] = {}       # id of a captured array -> its position
        self._seen: list[Contents] = []

    def __enter__(self) -> Region:
        self.parent = _state.region
        if self.parent is not None:
            self.outer = current_source(self.parent.outer) or self.outer
            self.observer = self.parent.observer
            self.policy = self.parent.policy
        _state.region = self
        self.record.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.record.__exit__(kind, error, trace)
        _state.region = self.parent
        self.closed = True
        if self.policy is not None:
            self.policy.recorded += len(self.record.values)
        for storage in self.lifted:
            if storage.inner is not None:
                storage.inner.pop(self, None)

    def encloses(self, other: Region | None) -> bool:
        """Whether `other` is this region or inside of it."""
        while other is not None and other is not self:
            other = other.parent
        return other is self

    def argument(self, type: TensorType, name: str) -> Storage:
        """The storage of a new input."""
        storage = Storage(self, input_value(type, name))
        self.arguments.append(storage)
        self.argument_inputs.append(storage.value)
        return storage

    def read(self, storage: Storage) -> Value:
        """What the storage holds here."""
        if storage.region is self:
            return storage.value
        if storage.inner is not None:
            found = storage.inner.get(self)
            if found is not None:
                return found
        if storage.region.closed or not storage.region.encloses(self):
            raise escaped(storage)
        return self._lift(storage)

    def _lift(self, storage: Storage) -> Value:
        lifted = input_value(storage.type, storage.value.name or storage.value.op.name, storage.value.source)
        if storage.inner is None:
            storage.inner = {}
        storage.inner[self] = lifted
        self.lifted.append(storage)
        self.lifted_inputs.append(lifted)
        if self.policy is not None and not storage.writable:
            self.policy.lifted[lifted] = self.policy.lifted.get(storage.value, storage.value)
        return lifted

    def write(self, storage: Storage, value: Value) -> None:
        """Give the storage a new value here; enclosing regions keep theirs."""
        self.read(storage)
        if storage.kept:
            refuse_write(storage.kept)
        if storage.region is self:
            storage.value = value
        else:
            assert storage.inner is not None
            storage.inner[self] = value
            for attempt in () if self.policy is None else self.policy.attempts:
                attempt.note_change(storage.region)
        storage.version += 1
        storage.written = True

    def capture(self, array: np.ndarray[Any, Any]) -> Value:
        """The input that stands for a concrete array, which is bound by reference unless it changes while tracing."""
        self.touched[id(array)] = self.touched.get(id(array), 0) + 1
        position = self._capture_of.get(id(array))
        if position is not None:
            if self._seen[position].matches(array):
                return self.capture_inputs[position]
            self._freeze(position)
        type_ = tensor(dtype_of(array.dtype), array.shape)
        found = input_value(type_, f"captured_{len(self.captured)}", self.record.source)
        self._capture_of[id(array)] = len(self.captured)
        self._seen.append(Contents(array))
        self.captured.append(array)
        self.capture_inputs.append(found)
        return found

    def array_of(self, value: Value) -> np.ndarray[Any, Any] | None:
        """The concrete array that an input of this region stands for."""
        return next((array for found, array in zip(self.capture_inputs, self.captured, strict=True) if found is value), None)

    def settle_captures(self) -> None:
        """Bind arrays that were written to after they had been read, as buffers made by the function are, by what was read."""
        for position, array in enumerate(self.captured):
            if not self._seen[position].matches(array):
                self._freeze(position)

    def _freeze(self, position: int) -> None:
        copy = self._seen[position].copy
        if copy is None:
            array = self.captured[position]
            raise UnsupportedError(at(self.capture_inputs[position].source, (
                f"a concrete array of shape {array.shape} is used here and written to afterwards\n"
                "  hint: write to a copy of it, or make it with bwcompiler.numpy.zeros(n) or np.zeros_like(x)")))
        self.captured[position] = copy
        self._seen[position] = Contents(copy)


class _State(threading.local):
    region: Region | None = None


_state = _State()


def active_region() -> Region | None:
    """The thread's innermost region, or None where nothing is being traced."""
    return _state.region


@contextmanager
def recording_in(region: Region) -> Iterator[None]:
    """What is computed is recorded in a region around the innermost one: before the op for which that one is traced."""
    inner, _state.region = _state.region, region
    try:
        with region.record:
            yield
    finally:
        _state.region = inner


@contextmanager
def untraced() -> Iterator[None]:
    """What runs inside is not part of the trace: functions of this package compute at once there."""
    region, _state.region = _state.region, None
    try:
        yield
    finally:
        _state.region = region


def read_contents(array: np.ndarray[Any, Any]) -> None:
    """What a concrete array holds decides what is traced: it is compared at every call, where it is from outside."""
    region = _state.region
    if region is None:
        return
    if region.policy is not None and region.policy.known is not None:
        region.policy.known.note_read(array)
    if region.observer is not None:
        region.observer.array(array, lambda: current_source(region.outer))


def placed(tracer: Any, specification: str) -> str | None:
    """What stands for a traced value in the text of an exception that is raised at run time; None outside of such texts."""
    policy = None if _state.region is None else _state.region.policy
    if policy is None or policy.formatted is None:
        return None
    policy.formatted.append((tracer, specification))
    return f"\0{len(policy.formatted) - 1}\0"


def escaped_message(storage: Storage) -> str:
    """What to tell the user about a tracer that is used outside its trace."""
    source = storage.value.source
    text = at(source, "made here") if source is not None else f"an argument of {storage.region.name}"
    if not storage.region.closed:
        return (f"a traced value of {storage.region.name!r} is used in another thread than the one that traces it:\n  {text}\n"
                "  hint: call the functions one after another; compiled functions use all cores, and may be called from threads")
    return (f"a traced value is used after, or outside of, the call of {storage.region.name!r} that made it:\n  {text}\n"
            "  hint: return the value from the function instead of storing it elsewhere (global, attribute, list)")


def refuse_write(kept: Site | bool) -> NoReturn:
    """Somebody writes to an array of which a list holds a copy."""
    error = UnsupportedError(at(current_source(open_region().outer), WRITTEN_TO_KEPT))
    raise error if isinstance(kept, bool) else Recapture(kept, error)


def escaped(storage: Storage) -> BaseException:
    """What to raise where a tracer is used outside its trace."""
    error = EscapedTracerError(at(current_source(), escaped_message(storage)))
    site = storage.region.site
    return error if site is None else Recapture(site, error)


def open_region(storage: Storage | None = None) -> Region:
    """The thread's innermost region; an escaped tracer is the only thing that can ask for one where there is none."""
    region = _state.region
    if region is None:
        message = escaped_message(storage) if storage is not None else "no function is being traced"
        raise EscapedTracerError(at(current_source(), message))
    return region
