"""The objects that loops iterate over: the number of their elements, and the element at an index that is not known.

`range`, `np.arange` of integers, traced and concrete arrays, and `enumerate`, `zip`, `reversed`, `map` of these.
"""

from __future__ import annotations

import collections
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import ops
from bwcompiler.errors import TracerError
from bwcompiler.frontend.numpy.selected.packing import packed
from bwcompiler.frontend.source.array_backed.growth import is_growing
from bwcompiler.frontend.source.array_backed.invariant_lists import element, is_joined
from bwcompiler.frontend.source.array_backed.lookups import are_rows, at_places, has_things, lookup_in
from bwcompiler.frontend.source.changes import own
from bwcompiler.frontend.source.concrete.contents import read_items
from bwcompiler.frontend.source.concrete.makers import shown
from bwcompiler.frontend.source.containers.progressions import Progression
from bwcompiler.frontend.source.items import indexed
from bwcompiler.frontend.source.library.iterators import Places
from bwcompiler.frontend.source.undecided.lists.gaps import has_gaps
from bwcompiler.frontend.source.variables import Divided, not_capturable
from bwcompiler.frontend.tracing.calls import call, call_within
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.data_slices import DataSlice
from bwcompiler.frontend.tracing.indexing.data_windows import count_between
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer, as_int64, extent_of, index_handle
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection
from bwcompiler.frontend.tracing.promotion import strong
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.tracer import ArrayTracer, Tracer
from bwcompiler.ir.extent import Extent, add_extents, known_le, scale_extent
from bwcompiler.ir.op import Value

MOST_PARTS = 4                 # iterations of a loop that are made one, so that remainders of its index are known
_OF_COLLECTIONS: tuple[type, ...] = (collections.deque, dict, type({}.keys()), type({}.values()), type({}.items()))
MOST_LISTED = 10_000           # elements of a header that becomes a list
DEEPEST = 12                   # operations that make a number, looked through to see whether another one is the same
ENDLESS = 1 << 62              # elements of itertools.count()


class Elements(NamedTuple):
    """count: how many, an extent or a traced integer.  at: the element at an index (from 0), which is a handle.

    traced  a tracing of the body that goes over them (`capture.Traceable`), if there was one.
    is_table  whether they are known numbers or texts, one by one: a loop over them is recorded only where it is long.
    has_things  whether there are texts, functions and the like among these, which an iteration can only choose among.
    is_tried  whether a loop over them is recorded only if it computes with traced values: else all that it makes is to be known.
    """

    count: Any
    at: Callable[[Any], Any]
    traced: Any = None
    is_tried: bool = False
    is_table: bool = False
    has_things: bool = False

    def after(self, number: int) -> Elements:
        """All but the first ones, of a number that is known."""
        return self._replace(count=self.count - number, at=lambda k: self.at(k + number), traced=None)


class Part:
    """The elements from one number to another, which are extents: what a part of a loop goes over."""

    def __init__(self, whole: Elements, start: Extent, stop: Extent) -> None:
        self.whole = whole
        self.start = start
        self.count = add_extents(stop, scale_extent(start, -1))

    def elements(self) -> Elements:
        start = call(index_handle, self.start)
        return Elements(self.count, lambda k: self.whole.at(start + k), is_tried=self.whole.is_tried)

    def __iter__(self) -> Iterator[Any]:
        assert isinstance(self.count, int)              # others are recorded, or nothing of the loop is
        return map(self.elements().at, range(self.count))


class Span:
    """range of bounds that are traced."""

    def __init__(self, *bounds: Any) -> None:
        start, stop, self.step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        if isinstance(self.step, Tracer):
            self.step = operator.index(self.step)  # demanded, or an error
        self.start, self.stop = _bound(start), _bound(stop)
        if self.step == 0:
            raise ValueError("range() arg 3 must not be zero")

    def __iter__(self) -> Iterator[Any]:
        if type(self.start) is type(self.stop) is int:     # known after all
            return iter(range(self.start, self.stop, self.step))
        count = call(count_between, self.start, self.stop, self.step)
        if count is not None:
            return iter([self.start + number * self.step for number in range(count)])
        not_capturable(f"the loop goes over range({self.start}, {self.stop}, {self.step}), whose length is not known while tracing")


def _bound(x: Any) -> Any:
    """A bound as a number if it can be known, as a handle else."""
    if not isinstance(x, Tracer) or isinstance(x, IndexTracer):
        return x if isinstance(x, IndexTracer) else operator.index(x)
    if not x._type.dtype.is_integer or x._type.shape:
        raise TypeError(f"'{x.dtype}' object cannot be interpreted as an integer")
    region = open_region()
    refusal = region.refusal
    try:
        return operator.index(x)
    except TracerError:
        region.refusal = refusal
        return x


class Steps:
    """np.arange of integers: what range gives, as numbers of NumPy's."""

    def __init__(self, *bounds: Any) -> None:
        self.span = Span(*bounds) if any(isinstance(bound, Tracer) for bound in bounds) else range(*bounds)

    def __iter__(self) -> Iterator[Any]:
        return iter([np.int64(number) for number in self.span])


class Header:
    """enumerate, zip, reversed or map of things of which one is not plain."""

    def __init__(self, function: Any, parts: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.function = function
        self.parts = parts
        self.options = options

    def __iter__(self) -> Iterator[Any]:
        for part in self.parts:
            read_items(part)
        return iter(self.function(*self.parts, **self.options))


def header(function: Any, parts: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """function(*parts) of the header of a loop, for Python's range, enumerate, zip, reversed and map; of np.arange where it can be that."""
    if function is range:
        return Span(*parts) if any(isinstance(part, Tracer) for part in parts) else range(*parts)
    if function is np.arange:
        integers = bool(parts) and not options and all(map(_is_integer, parts)) and len(parts) <= 3
        return Steps(*parts) if integers and (len(parts) < 3 or (type(parts[2]) is int and parts[2])) else None
    return Header(function, parts, options)


def listed(part: Any) -> Any:
    """What a header of its own stands for as a list, if that ends; anything else as it is."""
    if type(part) is not Header:
        return part
    items = list(itertools.islice(part, MOST_LISTED + 1))
    return part if len(items) > MOST_LISTED else own(items)


def _is_integer(x: Any) -> bool:
    """Whether np.arange makes 64-bit integers of it."""
    if isinstance(x, Tracer):
        return not x._type.shape and strong(x._kind).numpy == np.int64
    return type(x) in (int, np.int64)


def elements_of(source: Any) -> Elements | None:
    """The elements of something that a captured loop can go over."""
    if type(source) is range:
        return Elements(len(source), _progression(source.start, source.step))
    if isinstance(source, Span):
        return _of_span(source)
    if type(source) is Progression:
        return Elements(source.count, lambda k: source.start + k * source.step)
    if type(source) is Part:
        return source.elements()
    if isinstance(source, Steps):
        return _of_steps(source)
    if isinstance(source, ArrayTracer):
        return Elements(source._type.shape[0], lambda k: source[k])
    if type(source) is DataSlice and not source.lead:
        return Elements(source.number, lambda k: source.array[source.start + k])
    if isinstance(source, Selection) and not source.lead:
        rows = call_within(packed, source)
        return Elements(rows.count, lambda k: rows.array[k])
    if type(source) is np.ndarray and source.ndim and source.dtype.kind in "biufc":
        return Elements(len(source), lambda k: shown(source)[k])
    if type(source) is Places and source.is_new and source.shape:
        return Elements(math.prod(source.shape), source.at, is_table=True)
    if type(source) is itertools.count:
        numbers = [int(text) if text.lstrip("-").isdigit() else None for text in repr(source)[6:-1].split(", ")]     # count(3, 2)
        start, step = (*numbers, 1)[:2]
        return None if start is None or step is None else Elements(ENDLESS, _progression(start, step))
    if type(source) is str and source:
        return Elements(len(source), lambda k: indexed(source, k))
    if type(source) in (list, tuple) and source and type(source[0]) is float and (found := lookup_in(source)) is not None:
        return Elements(len(source), found)
    if is_joined(source):
        return _of_arrays(source)
    if type(source) in (list, tuple, *_OF_COLLECTIONS) and source and not has_gaps(source):
        found = at_places(source)
        return None if found is None else Elements(len(source), found, is_table=not are_rows(source), has_things=has_things(source))
    return _of_header(source) if isinstance(source, Header) else None


def _progression(start: Any, step: int) -> Callable[[Any], Any]:
    def at(k: Any) -> Any:
        return start + k if step == 1 else start + k * step
    return at


def _of_arrays(items: Any) -> Elements:
    """Of a list or tuple that holds what a loop has appended."""
    def at(k: Any) -> Any:
        if is_growing(items):
            not_capturable("it goes over a list that grows in it")
        return element(items, k)
    return Elements(len(items), at)


def _of_span(span: Span) -> Elements | None:
    at = _progression(span.start, span.step)
    start, stop = extent_of(span.start), extent_of(span.stop)
    if start is None or stop is None:
        count = call(count_between, span.start, span.stop, span.step)
        if count is not None:
            return Elements(count, at)
        _divide([bound for bound, extent in ((span.start, start), (span.stop, stop)) if extent is None])
        distance = span.stop - span.start if span.step > 0 else span.start - span.stop
        width = abs(span.step)
        return Elements(distance if width == 1 else (distance + (width - 1)) // width, at)
    count = _count(start, stop, span.step)
    return None if count is None else Elements(count, at)


def _divide(bounds: Sequence[Tracer]) -> None:
    """Raise Divided where bounds are made of a remainder or quotient of indices by a small number, as in `range((i + 1) % 2, n, 2)`."""
    policy = open_region().policy
    divisible = set() if policy is None else policy.divisible
    pending = [call(value_of, bound) for bound in bounds]
    seen = set(pending)
    while pending and divisible:
        value = pending.pop()
        fresh = [operand for operand in value.operands if operand not in seen]
        seen.update(fresh)
        pending += fresh
        if value.op in (ops.remainder, ops.floor_divide) and value.operands[0].op is ops.index_value and value.operands[1].op is ops.full:
            extent, parts = value.operands[0].attrs["extent"], value.operands[1].attrs["value"]
            moving = [index for index, factor in extent.terms if factor % parts] if 1 < parts <= MOST_PARTS else []
            if moving and divisible.issuperset(moving):
                raise Divided(moving[0], parts)        # one after the other


def _of_steps(steps: Steps) -> Elements | None:
    found = elements_of(steps.span)
    return None if found is None else Elements(found.count, lambda k: as_int64(found.at(k)))


def _count(start: Extent, stop: Extent, step: int) -> Extent | None:
    """How many numbers range(start, stop, step) has; None where that is not affine, or may be thought negative."""
    distance = add_extents(stop, scale_extent(start, -1))
    if isinstance(distance, int):
        return len(range(0, distance, step))
    distance = scale_extent(distance, 1 if step > 0 else -1)
    if known_le(distance, 0):
        return 0
    return distance if abs(step) == 1 and known_le(0, distance) else None


def _of_header(source: Header) -> Elements | None:
    if source.function is map:
        function, *parts = source.parts
        lines = _of_header(Header(zip, tuple(parts), {})) if parts else None
        return None if lines is None else Elements(lines.count, lambda k: function(*lines.at(k)))
    inner = [elements_of(part) for part in source.parts]
    if source.function is enumerate:
        start = source.options.get("start", source.parts[1] if len(source.parts) == 2 else 0)
        first = inner[0]
        if first is None or not isinstance(start, int):
            return None
        return first._replace(at=lambda k: (start + k, first.at(k)))
    known = [one for one in inner if one is not None]
    if len(known) < len(inner) or not known:
        return None
    if any(isinstance(one.count, Tracer) for one in known):
        may_differ = source.options.get("strict") and not all(_are_equal(one.count, known[0].count) for one in known[1:])
        return _shortest_of_data(known) if source.function is zip and not may_differ else None
    if source.function is reversed:
        last = add_extents(known[0].count, -1)
        return known[0]._replace(at=lambda k: known[0].at(last - k if isinstance(last, int) else _minus(last, k)))
    shortest = known[0].count
    for one in known[1:]:
        if known_le(one.count, shortest):
            shortest = one.count
        elif known_le(shortest, one.count) is None:
            return None
    if source.options.get("strict") and any(one.count != shortest for one in known):
        return None
    return Elements(shortest, lambda k: tuple([one.at(k) for one in known]), is_table=any(one.is_table for one in known),
                    has_things=any(one.has_things for one in known))


def _are_equal(x: Any, y: Any) -> bool:
    """Whether two numbers are computed in the same way, if data say what they are."""
    return _are_alike(value_of(x), value_of(y), DEEPEST) if isinstance(x, Tracer) and isinstance(y, Tracer) else x is y


def _are_alike(x: Value, y: Value, depth: int) -> bool:
    if x is y or not depth or x.op is not y.op or x.type != y.type or x.attrs != y.attrs or x.op.regions or x.op is ops.callback:
        return x is y
    pairs = zip(x.operands, y.operands, strict=True)
    return all(_are_alike(*pair, depth - 1) for pair in pairs) if x.operands else x.op is ops.full


def _shortest_of_data(known: Sequence[Elements]) -> Elements | None:
    """zip of things of which data says how many elements they have."""
    if not all(isinstance(one.count, Tracer | int) for one in known):
        return None
    shortest = known[0].count
    for one in known[1:]:
        if one.count is not shortest:
            shortest = np.minimum(shortest, one.count)
    return Elements(shortest, lambda k: tuple([one.at(k) for one in known]))


def _minus(last: Any, k: Any) -> Any:
    return not_capturable("reversed() of something whose length depends on a loop index")
