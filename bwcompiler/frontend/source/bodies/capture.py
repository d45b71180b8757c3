"""Capture of loops: the body of a Python loop is traced once, as the body of a `loop` or `while_loop` of the graph.

`Traceable` runs the user's body with variables that represent the state at the start of an iteration.  Numbers are carried from the
beginning.  A variable that holds an array is first assumed to hold the same array in all iterations, which may be assigned to; it is
carried if the body rebinds it.  A body that cannot be recorded raises NotCapturable, and then nothing has been changed.  `after_loops`
gives the variables what they hold after the loop.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import tree
from bwcompiler.errors import ShapeError
from bwcompiler.frontend.source.array_backed.appended import Element, Row
from bwcompiler.frontend.source.array_backed.boxes import require_alone
from bwcompiler.frontend.source.array_backed.element_forms import buffer
from bwcompiler.frontend.source.array_backed.grown_rows import elements_of, require_gaps, store
from bwcompiler.frontend.source.array_backed.growth import Growth, last_on_entry
from bwcompiler.frontend.source.array_backed.histories import History
from bwcompiler.frontend.source.array_backed.indexed_lists import IndexedList
from bwcompiler.frontend.source.array_backed.invariant_lists import Joined
from bwcompiler.frontend.source.carried import same_arrays
from bwcompiler.frontend.source.carried.carriable import can_be_carried, require_carriable
from bwcompiler.frontend.source.carried.copies import look_for_shared_choices
from bwcompiler.frontend.source.carried.exchanges import Exchange, exchange_of, look_for_aliases
from bwcompiler.frontend.source.carried.first_writes import look_for_first_writes
from bwcompiler.frontend.source.carried.kept import look_for_written
from bwcompiler.frontend.source.carried.moving import Moving, find, moving
from bwcompiler.frontend.source.carried.overwritten import is_overwritten, require_bound, stand_in
from bwcompiler.frontend.source.carried.remembered import Memory
from bwcompiler.frontend.source.carried.truths import Truths
from bwcompiler.frontend.source.containers.last_objects import LastObjects
from bwcompiler.frontend.source.containers.parts import Apart
from bwcompiler.frontend.source.containers.queues import require_lengths
from bwcompiler.frontend.source.effects.checks import together
from bwcompiler.frontend.source.effects.places import Scope, bound
from bwcompiler.frontend.source.syntax.names import Variables
from bwcompiler.frontend.source.syntax.statements.jumps import PREFIX
from bwcompiler.frontend.source.undecided.fitting import becomes_undecided, fitted_like
from bwcompiler.frontend.source.undecided.kinds.choices import Choice
from bwcompiler.frontend.source.undecided.kinds.unbound import is_of_one_iteration, look_for_unsure
from bwcompiler.frontend.source.variables import (
    UNBOUND,
    Again,
    Names,
    NotCapturable,
    is_number,
    not_capturable,
    nothing_like,
    open_policy,
    same,
)
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow.bodies import PROMOTIONS, Leaf, Traced, entry_leaf, joined, trace_body
from bwcompiler.frontend.tracing.indexing.index_handle import IndexTracer, index_handle
from bwcompiler.frontend.tracing.operands import is_in_c_order, kind_of
from bwcompiler.frontend.tracing.policy import Site
from bwcompiler.frontend.tracing.promotion import Kind
from bwcompiler.frontend.tracing.storages.memory_order import unknown
from bwcompiler.frontend.tracing.storages.region import Region, Storage, open_region
from bwcompiler.frontend.tracing.storages.views import is_known_at, moves
from bwcompiler.frontend.tracing.tracer import Tracer, handle
from bwcompiler.ir.extent import Extent, Index, add_extents, lower, upper
from bwcompiler.ir.types import TensorType

SHORT = 8                      # loops of fewer iterations are unrolled,
MOST_COPIES = 28               # unless what is inside would be traced more often than this, as loops around and inside are short too
MOST_ATTEMPTS = 60             # to find all that a body carries and assigns to


class Result(NamedTuple):
    """A variable after the last iteration: what holds its value (`storage` of the body, or nothing), and the handle that it was."""

    name: str
    end: Any
    storage: Storage | None


class Traceable:
    """A body with its variables: what they hold on entry, which are carried, and what they held at the end of the tracing.

    carried  names that are parameters of the body; kinds: of all leaves that these have.
    count, index  of a counted loop; capacity: the most iterations, if known; counter: what counts them where a loop may be left before.
    indexed  lists of numbers that are arrays in it, by their ids; kept: lists that must not be; joined: lists of arrays that are one in it;
             histories: lists that grow whose numbers are in arrays, too.
    growths  lists that grow in it, by their ids; elements: what the iteration appended to them; read_at_ends: how many of the last or
             first elements of lists, by the ids of these and whether they are the first, were read before anything was appended.
    exchange  arrays that exchange their names, of a loop whose end is data.
    region, around  of the body, and of what is around the loop.
    runs     whether there surely is an iteration; still: per array that it carries, whether an iteration leaves its name with it.
    rows     arrays whose rows the iterations make, of the types `buffered`; buffers: these by the storages that the rows are of.
    apart    variables that are bound anew to objects and containers, of which the parts are carried; last: likewise, read after it alone.
    drawn    what its iterations draw, by the generators' ids (`drawn.tables.Tables`).  read_by_test: what its test may read by other names.
    moving   variables whose shapes move with the iterations, in the parameters `rooms`; first: runs the first iteration, to find them.
    overwritten  attributes and items that iterations bind before they read them.
    """

    def __init__(self, names: Names, variables: Variables, run: Callable[[], None], site: Site, count: Extent | None = None,
                 index: Index | None = None, capacity: int | None = None, counter: str = "", first: Callable[[], None] | None = None,
                 ) -> None:
        self.scope = Scope(names, variables, self)
        self.count, self.index = count, index
        self.capacity = capacity if count is None else upper(count)
        self.counter = counter
        self.growths: dict[int, Growth] = {}
        self.found_growths: dict[int, Growth] = {}
        self.indexed: dict[int, IndexedList] = {}
        self.kept: set[int] = set()
        self.joined: dict[int, Joined] = {}
        self.tables: dict[int, tuple[Any, Any]] = {}
        self.histories: dict[int, History] = {}
        self.elements: list[tuple[Growth, list[Element]]] = []
        self.read_at_ends: dict[tuple[int, bool], int] = {}
        self.buffers: dict[Storage, Tracer] = {}
        self.buffered: list[TensorType] = []
        self.read_by_test: set[Storage] = set()
        self.rows: list[Tracer] = []
        self.exchange: Exchange | None = None
        self.moving: dict[str, Moving] = {}
        self.rooms: dict[str, Tracer] = {}
        self.overwritten: set[str] = set()
        self.names, self.variables = names, variables
        self.run, self.first, self.site = run, first, site
        self.entry = names.held(variables.stored)
        self.apart, self.last = Apart(self), LastObjects(self)
        self.carried = {name for name in variables.carried if is_number(self.entry[name])}
        self.kinds: dict[str, list[Kind]] = {}
        self.truths = Truths()
        self.ends: dict[str, Any] = {}
        self.given: dict[str, Any] = {}
        self.results: list[Result] = []
        self.region: Region | None = None
        self.around = open_region()
        self.ordered: list[bool] = []
        self.runs = count is not None and lower(count) >= 1
        self.still: dict[str, Any] = {}
        self.drawn: dict[int, Any] = {}

    def order(self) -> list[str]:
        return [name for name in self.variables.carried if name in self.carried]

    def leaves(self, name: str) -> list[Leaf]:
        """What a carried variable is on entry, promoted to what it turned out to be."""
        found = [entry_leaf(leaf) for leaf in tree.leaves(self.entry[name])]
        found = [self.moving[name].widened(leaf) for leaf in found] if name in self.moving else found
        kinds = self.kinds.setdefault(name, [leaf.kind for leaf in found])
        return self.truths.known(name, [leaf.promoted(kind) for leaf, kind in zip(found, kinds, strict=True)])

    def traced(self, name: str) -> tuple[list[Leaf], Traced]:
        """The traced body, when what it carries has settled."""
        policy = open_policy()
        assert policy is not None
        mark = policy.mark()
        memory = Memory(self, policy)
        memory.begin()
        try:
            attempts = itertools.count()
            while next(attempts) < min(PROMOTIONS + 2 * len(self.variables.carried) + 2 * len(self.drawn), MOST_ATTEMPTS):
                self._prepare()
                policy.forget(mark)
                leaves = call(lambda: [leaf for one in self.order() for leaf in self.leaves(one)])
                treedef = tree.structure([self.entry[one] for one in self.order()])
                try:
                    found = trace_body(self._iteration, "carry", name, treedef, [leaf.argument() for leaf in leaves],
                                       [leaf.truth for leaf in leaves])
                except Again as again:
                    if again.loop is not self:
                        raise
                    self.carried |= again.carried
                    self._adopt()
                    self.names.restore(self.entry)
                    self.apart.add_found()
                    continue
                except (Exception, NotCapturable) as error:
                    memory.forget()
                    if not self._adopt() and not (isinstance(error, ShapeError) and self._move(find(self) if self.first else {})):
                        if not memory.has_guessed():
                            raise
                        memory.undo_guess()
                    continue
                wrong = memory.has_guessed_wrong()
                if self._adopt() or wrong:
                    if wrong:
                        memory.undo_guess()
                elif self._settled(leaves, found):
                    memory.note()
                    return leaves, found
            return not_capturable("the types of what the loop carries do not settle")
        except BaseException:
            self.scope.undo()
            self.restore()
            policy.forget(mark)
            raise

    def restore(self) -> None:
        """Give lists, variables and places, which may be in lists, what they held."""
        held: list[Any] = [*self.growths.values(), *self.indexed.values()]
        for one in held:
            one.restore()
        self.names.restore(self.entry)

    def _prepare(self) -> None:
        """Before each attempt: what the lists held last, arrays for what they get."""
        for growth in self.growths.values():
            if growth.count:
                if growth.count != len(self.entry[growth.name]):
                    self.kinds.pop(growth.name, None)
                self.entry[growth.name] = last_on_entry(self, growth)
                self.carried.add(growth.name)
        made: list[Any] = [*self.indexed.values(), *self.joined.values(), *self.histories.values()]
        for one in made:
            one.prepare()
        self.rows = [buffer(self.capacity, type_) for type_ in self.buffered if self.capacity is not None]

    def _adopt(self) -> bool:
        """Whether places and lists were found, or more of lists, that are to be variables of the body from now on."""
        held = self.scope.adopt(self.names)
        bound(self.names, held)
        for name, value in held.items():
            self.add(name, value)
        for growth in self.found_growths.values():
            growth.name = "what a list held last" + "'" * len(self.growths)
            growth.each = len(growth.items) or 1
            growth.expect_read(self.read_at_ends.get((id(growth.base), growth.front), 0))
            self.names.add(growth.name, growth)
            self.add(growth.name, ())
            self.growths[id(growth.base)] = growth
        found, self.found_growths = bool(held or self.found_growths), {}
        return found

    def _move(self, found: dict[str, Moving]) -> bool:
        """Whether there are more variables whose shapes move: then the body is to be traced again."""
        new = {name: one for name, one in found.items() if name not in self.moving}
        self.moving.update(new)
        self.carried.update(new)
        for name in new:
            self.kinds.pop(name, None)
        return bool(new)

    def begin_like(self, other: Traceable) -> None:
        """Begin with what another tracing of the same body has found: what is carried, of which kinds; places; what is taken apart."""
        for key, (place, name) in other.scope.places.items():
            self.names.add(name, place)
            self.scope.places[key] = place, name
            self.add(name, self.names[name])
        for name in other.apart.forms:
            self.apart.add(name)
        known = {name for name in other.carried if name in self.variables.carried and not name.startswith(PREFIX)}
        self.carried |= known
        self.kinds.update({name: list(other.kinds[name]) for name in known if name in other.kinds and name not in other.moving})

    def add(self, name: str, value: Any) -> None:
        """One more variable."""
        self.entry[name] = value
        if is_number(value):
            self.carried.add(name)
        stored, carried, results = [(*names, name) for names in self.variables[:3]]
        self.variables = self.variables._replace(stored=stored, carried=carried, results=results)

    def _settled(self, leaves: list[Leaf], found: Traced) -> bool:
        """Whether the body gives back what it got; else its kinds are noted."""
        names = [(name, number) for name in self.order() for number in range(len(self.kinds[name]))]
        place, settled = 0, self.truths.are_settled(names, leaves, found)
        for name in self.order():
            for number, kind in enumerate(self.kinds[name]):
                output = found.result.outputs[place]
                if output.shape != leaves[place].value.shape:
                    if is_overwritten(self, name, place, found):
                        self.overwritten.add(name)
                        self.carried.remove(name)
                        del self.kinds[name]
                        return False
                    made = moving(leaves[place].value.shape, output.shape, self.count)
                    if made is not None and isinstance(self.entry[name], Tracer | np.ndarray) and self._move({name: made}):
                        return False
                    not_capturable(f"{name} has shape {leaves[place].value.shape} before an iteration and {output.shape} after it",
                                   peel=True)
                better = joined(kind, found.kinds[place])
                if better is not kind:
                    self._require_types_not_asked(name)
                    self.kinds[name][number], settled = better, False
                place += 1
        return settled

    # ----- one iteration
    def _iteration(self, given: Any) -> Any:
        self.region = open_region()
        self.region.site, self.scope.reads_unsure = self.site, False
        self.names.restore(self.entry)
        self.given = self.bind(given)
        starts = self.arrays(self.entry)
        self.ordered = [is_in_c_order(leaf) for leaf in starts]
        for leaf, ordered in zip(self.arrays(self.given), self.ordered, strict=True):
            if not ordered:
                leaf._storage.layout = unknown("what a loop carries")
        held: list[Any] = [*self.growths.values(), *self.indexed.values(), *self.drawn.values()]
        for one in held:
            one.begin()
        self.run()
        for tables in self.drawn.values():
            tables.end()
        self.apart.end()
        held = [*self.joined.values(), *self.histories.values()]
        for one in held:
            one.end(self.region)
        self._end_growths()
        for indexed in self.indexed.values():
            indexed.end(self.region)
        self.ends = self.names.held(self.variables.stored)
        self.ends |= {name: fitted_like(self.ends[name], self.entry[name]) for name in self.order()}
        self._look_for_more()
        require_alone(self.scope, [self.ends[name] for name in dict.fromkeys((*self.variables.carried, *self.variables.results))],
                      [growth.items for growth in self.growths.values()])
        look_for_aliases(self)
        look_for_shared_choices(self)
        look_for_written(self)
        try:
            look_for_first_writes(self)
            same_arrays.add_ends(self)
        except Again:                              # the kinds are known as well: they need no attempt of their own
            self._foresee(set())
            raise
        self.ordered = [before and is_in_c_order(after) for before, after in zip(self.ordered, self.arrays(self.ends), strict=True)]
        self.results = [result for name in self.last.all_names() if (result := self._result(name)) is not None]
        storages = dict.fromkeys(result.storage for result in self.results if result.storage is not None)
        return [self._end(name) for name in self.order()], [handle(storage, (), storage.type) for storage in storages], together()

    def _end(self, name: str) -> Any:
        """What an iteration gives to the next one."""
        if name not in self.moving or self.index is None:
            return self.ends[name]
        return self.moving[name].put(name, self.rooms[name], self.ends[name], add_extents(self.index.extent(), 1))

    def _end_growths(self) -> None:
        """What was appended becomes rows of the arrays for that, if there are such arrays already."""
        region = self.region
        assert region is not None
        self.found_growths = {key: growth for key, growth in self.found_growths.items() if not growth.is_guess}
        growths = [*self.growths.values(), *self.found_growths.values()]
        self.elements = [(growth, elements_of(growth, region, self.capacity)) for growth in growths]
        storages = dict.fromkeys(leaf.storage for _, elements in self.elements for one in elements for leaf in one.leaves if isinstance(
            leaf, Row))
        before, self.buffered = self.buffered, [storage.type for storage in storages]
        settled = before == self.buffered and all(growth.each == len(elements) for growth, elements in self.elements)
        for growth, elements in self.elements:
            growth.each = len(elements)
            growth.end()
        if self.count is not None and not isinstance(self.count, int):
            for growth, elements in self.elements:
                require_gaps(growth, elements, region)
        if not settled and not self.found_growths:
            raise Again(self)
        if settled and storages:
            index = self.names[self.counter] - 1 if self.index is None else call(index_handle, self.index.extent())
            self.buffers = dict(zip(storages, self.rows, strict=True))
            for storage, rows in self.buffers.items():
                store(rows, index, storage, region)

    def bind(self, given: Sequence[Any]) -> dict[str, Any]:
        """Give the carried variables the parameters of a region, of which nobody can have the numbers."""
        found = dict(zip(self.order(), given, strict=True))
        for leaf in tree.leaves(given):
            leaf._storage.demandable = False
        self.rooms = {name: found[name] for name in self.moving}
        found |= {name: self.moving[name].taken(room, self.index.extent()) for name, room in self.rooms.items() if self.index is not None}
        self.names.restore(found | {name: stand_in(self, name) for name in self.overwritten})
        self.apart.begin()
        return found

    def arrays(self, held: dict[str, Any]) -> list[Any]:
        """The leaves of the carried variables that have two axes or more: those whose memory order may matter."""
        return [leaf for name in self.order() for leaf in tree.leaves(held[name]) if _rank(leaf) > 1]

    def _look_for_more(self) -> None:
        """Variables that were tried as the same in all iterations, and are not."""
        more, found = set(), False
        for name in self.variables.carried:
            end, start = self.ends[name], self.entry[name]
            require_lengths(self.names, name, start, end)
            if name in self.overwritten:
                require_bound(name, end)
                continue
            if is_of_one_iteration(self, name):
                continue
            if not same(end, start) and self.apart.finds(name, start, end):
                found = True
            elif not same(end, start) and becomes_undecided(self, name, start, end):
                more.add(name)
            elif name in self.carried:
                if tree.structure(end) != tree.structure(start) or end is UNBOUND:
                    not_capturable(f"{name} does not keep its structure", peel=True)
            elif not same(end, start):
                if start is UNBOUND and name.startswith(PREFIX) and can_be_carried(end):
                    self.entry[name] = start = nothing_like(end)
                require_carriable(self.names, name, start, end)
                more.add(name)
        more |= look_for_unsure(self, nothing_like)
        exchange = exchange_of(self, more)
        if exchange is not None and self.count is not None:
            raise NotCapturable("arrays that are assigned to change their names in it", repeat=exchange.period)
        if exchange is not None:
            self.exchange = exchange
        if more or found:
            self._foresee(more)
            if self.exchange is None:
                same_arrays.foresee(self, more)
            raise Again(self, more)

    def _foresee(self, more: set[str]) -> None:
        """What the next attempt carries are the kinds that this one has shown, or more."""
        for name in {*self.carried, *more}.intersection(self.ends):
            starts, ends = tree.leaves(self.entry[name]), tree.leaves(self.ends[name])
            if type(self.entry[name]) is Choice or tree.structure(self.entry[name]) != tree.structure(self.ends[name]):
                continue
            kinds = self.kinds.get(name) or [kind_of(start) for start in starts]
            self.kinds[name] = [joined(kind, kind_of(end)) for kind, end in zip(kinds, ends, strict=True)]
            if self.kinds[name] != kinds:
                self._require_types_not_asked(name)

    def _require_types_not_asked(self, name: str) -> None:
        if self.region is not None and self.region.policy is not None and self.region.policy.types_asked:
            not_capturable(f"the type of {name} is another one after the first iteration, and is asked for", peel=True)

    def _result(self, name: str) -> Result | None:
        """What becomes of a variable that is not carried; None where that is known elsewhere."""
        end = self.ends[name]
        if name in self.carried or end is UNBOUND or same(end, self.entry[name]):
            return None
        if not isinstance(end, Tracer) or isinstance(end, IndexTracer):
            return Result(name, end, None)
        if any(moves(step) for step in end._chain) and (self.index is None or not all(map(is_known_at, end._chain))):
            not_capturable(f"{name} is a view that moves with the loop, and is used after it")
        return Result(name, end, end._storage if end._storage.region is self.region else None)


def _rank(x: Any) -> int:
    return x._type.rank if isinstance(x, Tracer) else np.ndim(x)
