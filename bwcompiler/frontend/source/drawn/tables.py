"""Random numbers of counted loops whose iterations all draw alike: they are known while tracing, and the loops read them from tables.

    for t in range(100):                    z = np.stack([rng.normal(size=3) for t in range(100)])       # while tracing
        x = x + rng.normal(size=3)          for t in range(100): x = x + z[t]

The body is traced once to see what an iteration draws, loops in it included; then all is drawn, in NumPy's order, and the body is traced
with the tables.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bwcompiler.frontend.source.variables import Again
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.indexing.index_handle import index_handle
from bwcompiler.frontend.tracing.operands import as_tracer
from bwcompiler.frontend.tracing.policy import Policy
from bwcompiler.frontend.tracing.storages.region import Region
from bwcompiler.frontend.tracing.tracer import Tracer

MOST_DRAWS = 100_000           # calls of a generator while tracing,
MOST_NUMBERS = 1 << 21         # and numbers in a table
_KINDS = "biuf"


class _Request(NamedTuple):
    """A call in an iteration: of a method, with its arguments, in loops inside; and what it gave for an example.

    inner    these loops, as the numbers of the first requests in them and of their iterations.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    inner: tuple[tuple[int, int], ...]
    example: Any = None

    def of(self, generator: Any) -> Any:
        return getattr(generator, self.name)(*self.args, **self.kwargs)


class Tables:
    """What the iterations of one loop draw from one generator; is_off: not all of them draw alike.

    place    the number of the next request in this iteration; after: the generator behind the last iteration.
    """

    def __init__(self, loop: Any, generator: Any, follow: Callable[[], None]) -> None:
        self.loop = loop
        self.generator = generator
        self.follow = follow
        self.requests: list[_Request] = []
        self.tables: list[np.ndarray[Any, Any]] = []
        self.after: Any = None
        self.place = 0
        self.is_off = False

    def begin(self) -> None:
        self.place = 0

    def row(self, loops: Sequence[Any], asked: _Request) -> Any:
        """What an iteration draws next, inside of these loops; None where that is too much."""
        number, self.place = self.place, self.place + 1
        if number < len(self.requests) and repr(self.requests[number][:4]) != repr(asked[:4]):
            del self.requests[number:]             # what was tried before came to nothing
            self.tables = []
        if number == len(self.requests):
            example = asked.of(copy.deepcopy(self.generator))
            count = math.prod([loop.count for loop in loops])
            if np.asarray(example).dtype.kind not in _KINDS or count > MOST_DRAWS or count * max(np.size(example), 1) > MOST_NUMBERS:
                return None
            self.requests.append(asked._replace(example=example))
        example = self.requests[number].example
        if number >= len(self.tables):
            return example if np.shape(example) else _number(call(as_tracer, np.asarray(example)), example)
        index = tuple([call(index_handle, loop.index.extent()) for loop in loops])
        return _number(call(as_tracer, self.tables[number])[index], example)

    def end(self) -> None:
        """After an iteration: draw what it was found to need."""
        if self.is_off:
            return
        if self.place != len(self.requests):       # an attempt before drew more
            del self.requests[self.place:]
            self.tables = []
        if len(self.tables) < len(self.requests):
            if sum([self.loop.count * math.prod([count for _, count in one.inner]) for one in self.requests]) > MOST_DRAWS:
                self.off()
            self._draw()
            raise Again(self.loop)

    def off(self) -> None:
        """The body is traced again, for programs that draw."""
        self.is_off = True
        raise Again(self.loop)

    def _draw(self) -> None:
        self.after = copy.deepcopy(self.generator)
        found: list[list[Any]] = [[] for _ in self.requests]
        for _ in range(self.loop.count):
            self._iteration(found, 0, len(self.requests), 0)
        shapes = [(self.loop.count, *[count for _, count in one.inner], *np.shape(one.example)) for one in self.requests]
        self.tables = [np.array(rows).reshape(shape) for rows, shape in zip(found, shapes, strict=True)]

    def _iteration(self, found: list[list[Any]], first: int, end: int, level: int) -> None:
        """Draw what the requests from `first` to `end` are for, once; level: the loops around them."""
        while first < end:
            inner = self.requests[first].inner[level:]
            if not inner:
                found[first].append(self.requests[first].of(self.after))
                first += 1
                continue
            behind = next((number for number in range(first, end) if self.requests[number].inner[level:level + 1] != inner[:1]), end)
            for _ in range(inner[0][1]):
                self._iteration(found, first, behind, level + 1)
            first = behind

    def settle(self) -> None:
        """The loop is recorded: the generator has drawn."""
        if self.tables and not self.is_off:
            _become(self.generator, self.after)
            self.follow()


class _Inner:
    """Of a loop inside of the one that has the tables: where its requests begin."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.first = tables.place

    def begin(self) -> None:
        """The body is traced once more."""
        self.tables.place = self.first

    def end(self) -> None:
        pass

    def settle(self) -> None:
        pass


class Place(NamedTuple):
    """The loops whose bodies are being traced, from the one that has the tables; inner: see `_Request`."""

    tables: Tables
    loops: Sequence[Any]
    inner: tuple[tuple[int, int], ...]

    def row(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.tables.row(self.loops, _Request(name, args, kwargs, self.inner))


def place_in_tables(policy: Policy, outside: Region, inside: Region, generator: Any, follow: Callable[[], None]) -> Place | None:
    """Where a generator of the region `outside` draws; None where something else than counted loops is between it and `inside`."""
    regions: list[Region] = []
    region: Region | None = inside
    while region is not None and region is not outside:
        regions.insert(0, region)
        region = region.parent
    loops = [scope.loop for scope in policy.scopes[-len(regions):]]
    if policy.counting or [getattr(loop, "region", None) for loop in loops] != regions:
        return None
    if any(loop.index is None or not isinstance(loop.count, int) for loop in loops):
        return None
    tables: Tables = loops[0].drawn.setdefault(id(generator), Tables(loops[0], generator, follow))
    if tables.is_off:
        return None
    marks = [loop.drawn.setdefault(id(generator), _Inner(tables)) for loop in loops[1:]]
    return Place(tables, loops, tuple([(mark.first, loop.count) for mark, loop in zip(marks, loops[1:], strict=True)]))


def turn_off(policy: Policy, generator: Any) -> None:
    """The program draws: loops around it that read numbers of the same generator from tables are traced again without."""
    for scope in policy.scopes:
        found = getattr(scope.loop, "drawn", {}).get(id(generator))
        if isinstance(found, Tables) and not found.is_off:
            found.off()


def _number(found: Any, example: Any) -> Any:
    if type(example) in (int, float, bool) and isinstance(found, Tracer):
        found._kind = type(example)
    return found


def _become(generator: Any, other: Any) -> None:
    """Give a generator the state of another one."""
    if hasattr(generator, "setstate"):
        generator.setstate(other.getstate())
    elif isinstance(generator, np.random.RandomState):
        generator.set_state(other.get_state(legacy=False))
    else:
        generator.bit_generator.state = other.bit_generator.state
