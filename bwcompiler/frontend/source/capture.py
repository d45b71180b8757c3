"""Capture of loops: the body of a Python loop is traced once, as the body of a `loop` or `while_loop` of the graph.

`Body` runs the user's body with variables that stand for what an iteration takes from the one before it.  Numbers are carried
from the beginning; a variable that holds an array is tried as the same array in all iterations, which may be assigned to, and
carried where the body rebinds it.  What cannot be recorded raises NotCapturable; nothing has changed then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from bwcompiler import ops, tree
from bwcompiler.errors import BwError, at
from bwcompiler.frontend.source.checks import note, together
from bwcompiler.frontend.source.integers import may_overflow
from bwcompiler.frontend.source.iteration import Elements
from bwcompiler.frontend.source.jumps import PREFIX
from bwcompiler.frontend.source.rewriting import Variables
from bwcompiler.frontend.source.variables import UNBOUND, Names, NotCapturable, is_number, not_capturable, same, site_of
from bwcompiler.frontend.tracing.bodies import PROMOTIONS, Leaf, Outer, Traced, added, as_kind, entry_leaf, joined, region_graph, trace_body
from bwcompiler.frontend.tracing.index_handle import IndexTracer, index_handle
from bwcompiler.frontend.tracing.memory_order import C_ORDER, Layout, UnknownOrderError, unknown
from bwcompiler.frontend.tracing.promotion import Kind
from bwcompiler.frontend.tracing.region import Policy, Recapture, Region, Site, Storage, open_region
from bwcompiler.frontend.tracing.source import current_source
from bwcompiler.frontend.tracing.tracer import Tracer, call, fresh, fresh_array, handle
from bwcompiler.frontend.tracing.views import ReshapeView, StridedView
from bwcompiler.ir.extent import Affine, Index, add_extents, lower, mentions_index, substitute
from bwcompiler.ir.op import Value, input_value
from bwcompiler.ops.rules import zero_of

SHORT = 8                      # loops of fewer iterations are unrolled,
MOST_COPIES = 28               # unless what is inside would be traced more often than this, as loops around and inside are short too


_Found = TypeVar("_Found")


class _Retry(BaseException):
    """The body has to be traced again, with more of its variables carried."""

    def __init__(self, carried: set[str]) -> None:
        self.carried = carried


class Result(NamedTuple):
    """A variable after the last iteration: what holds its value (`storage` of the body, or nothing), and the handle that it was."""

    name: str
    end: Any
    storage: Storage | None


class Traceable:
    """A body with its variables: what they hold on entry, which are carried, and what they held at the end of the tracing.

    carried  names that are parameters of the body; kinds: of all leaves that these have.
    """

    def __init__(self, names: Names, variables: Variables, run: Callable[[], None], site: Site) -> None:
        self.names = names
        self.variables = variables
        self.run = run
        self.site = site
        self.entry = names.held(variables.stored)
        self.carried = {name for name in variables.carried if is_number(self.entry[name])}
        self.kinds: dict[str, list[Kind]] = {}
        self.ends: dict[str, Any] = {}
        self.given: dict[str, Any] = {}
        self.results: list[Result] = []
        self.region: Region | None = None
        self.ordered: list[bool] = []

    def order(self) -> list[str]:
        return [name for name in self.variables.carried if name in self.carried]

    def leaves(self, name: str) -> list[Leaf]:
        """What a carried variable is on entry, promoted to what it turned out to be."""
        found = [entry_leaf(leaf) for leaf in tree.leaves(self.entry[name])]
        kinds = self.kinds.setdefault(name, [leaf.kind for leaf in found])
        return [leaf.promoted(kind) for leaf, kind in zip(found, kinds, strict=True)]

    def traced(self, name: str) -> tuple[list[Leaf], Traced]:
        """The traced body, when what it carries has settled."""
        for _ in range(PROMOTIONS + len(self.variables.carried)):
            leaves = call(lambda: [leaf for one in self.order() for leaf in self.leaves(one)])
            treedef = tree.structure([self.entry[one] for one in self.order()])
            try:
                found = trace_body(self._iteration, "carry", name, treedef, [leaf.argument() for leaf in leaves])
            except _Retry as retry:
                self.carried |= retry.carried
                continue
            if self._settled(leaves, found):
                return leaves, found
        return not_capturable("the types of what the loop carries do not settle")

    def _settled(self, leaves: Sequence[Leaf], found: Traced) -> bool:
        """Whether the body gives back what it got; else its kinds are noted."""
        place, settled = 0, True
        for name in self.order():
            for number, kind in enumerate(self.kinds[name]):
                output = found.result.outputs[place]
                if output.shape != leaves[place].value.shape:
                    not_capturable(f"{name} has shape {leaves[place].value.shape} before an iteration and {output.shape} after it")
                better = joined(kind, found.kinds[place])
                if better is not kind:
                    self.kinds[name][number], settled = better, False
                place += 1
        return settled

    # ----- one iteration
    def _iteration(self, given: Any) -> Any:
        self.region = open_region()
        self.region.site = self.site
        self.names.restore(self.entry)
        self.given = self.bind(given)
        starts = self._arrays(self.entry)
        self.ordered = [is_in_c_order(leaf) for leaf in starts]
        for leaf, ordered in zip(self._arrays(self.given), self.ordered, strict=True):
            if not ordered:
                leaf._storage.layout = unknown("what a loop carries")
        self.run()
        self.ends = self.names.held(self.variables.stored)
        self._look_for_more()
        self._look_for_aliases()
        self.ordered = [before and is_in_c_order(after) for before, after in zip(self.ordered, self._arrays(self.ends), strict=True)]
        self.results = [result for name in self.variables.results if (result := self._result(name)) is not None]
        storages = dict.fromkeys(result.storage for result in self.results if result.storage is not None)
        return [self.ends[name] for name in self.order()], [_whole(storage) for storage in storages], together()

    def bind(self, given: Sequence[Any]) -> dict[str, Any]:
        """Give the carried variables the parameters of a region, of which nobody can have the numbers."""
        found = dict(zip(self.order(), given, strict=True))
        for leaf in tree.leaves(given):
            leaf._storage.demandable = False
        self.names.restore(found)
        return found

    def _arrays(self, held: dict[str, Any]) -> list[Any]:
        """The leaves of the carried variables that have two axes or more: those whose memory order may matter."""
        return [leaf for name in self.order() for leaf in tree.leaves(held[name]) if len(np.shape(leaf)) > 1]

    def _unroll(self) -> NoReturn:
        """The memory order of what the loop carries was asked for: only Python knows it."""
        raise Recapture(self.site, UnknownOrderError(at(current_source(), "it depends on the memory order of what a loop carries")))

    def _look_for_more(self) -> None:
        """Variables that were tried as the same in all iterations, and are not."""
        more = set()
        for name in self.variables.carried:
            end, start = self.ends[name], self.entry[name]
            if name in self.carried:
                if tree.structure(end) != tree.structure(start) or end is UNBOUND:
                    not_capturable(f"{name} does not keep its structure")
            elif not same(end, start):
                if start is UNBOUND and name.startswith(PREFIX) and can_be_carried(end):
                    self.entry[name] = start = _nothing_like(end)
                if start is UNBOUND or end is UNBOUND or not can_be_carried(start) or not can_be_carried(end):
                    not_capturable(f"{name} is rebound, and is no array or number on entry and after an iteration")
                more.add(name)
        if more:
            raise _Retry(more)

    def _look_for_aliases(self) -> None:
        """Carried arrays are copies in each iteration: refuse where somebody could see a write to one of them by another name."""
        given = [leaf for name in self.order() for leaf in tree.leaves(self.given[name]) if isinstance(leaf, Tracer)]
        ends = [leaf for name in self.order() for leaf in tree.leaves(self.ends[name]) if isinstance(leaf, Tracer)]
        if any(leaf._storage.written for leaf in given):
            not_capturable("an array is assigned to that the loop rebinds")
        assert self.region is not None
        starts = [leaf for name in self.order() for leaf in tree.leaves(self.entry[name]) if isinstance(leaf, Tracer)]
        for leaf in (*starts, *ends):
            storage = leaf._storage
            if storage.region is not self.region and storage.writable and self._assigned(storage):
                not_capturable("the loop rebinds a variable to an array that it also assigns to")

    def _assigned(self, storage: Storage) -> bool:
        region = self.region
        assert region is not None
        return storage in region.lifted and region.read(storage) is not region.lifted_inputs[region.lifted.index(storage)]

    def _result(self, name: str) -> Result | None:
        """What becomes of a variable that is not carried; None where that is known elsewhere."""
        end = self.ends[name]
        if name in self.carried or end is UNBOUND or same(end, self.entry[name]):
            return None
        if not isinstance(end, Tracer) or isinstance(end, IndexTracer):
            return Result(name, end, None)
        if any(_moves(step) for step in end._chain):
            not_capturable(f"{name} is a view that moves with the loop, and is used after it")
        return Result(name, end, end._storage if end._storage.region is self.region else None)

    # ----- afterwards
    def place(self, leaves: Sequence[Leaf], items: Sequence[Value], last: Callable[[Affine], Any]) -> None:
        """Give the variables what they hold after the loop: values of the carry, then of the results' storages."""
        self.names.restore(self.entry)
        position = 0
        for name in self.order():
            count = len(self.kinds[name])
            handles = [leaf.handle(value) for leaf, value in zip(leaves[position:position + count], items[position:], strict=False)]
            self.names[name] = tree.unflatten(tree.structure(self.entry[name]), handles)
            position += count
        for leaf, ordered in zip(self._arrays(self.names.held(self.order())), self.ordered, strict=True):
            if not ordered:
                leaf._storage.layout = Layout(self._unroll)
        made: dict[Storage, Tracer] = {}
        if len(items) > position + len({result.storage for result in self.results if result.storage is not None}):
            note(fresh(items[-1]))
        for result in self.results:
            storage = result.storage
            if storage is None:
                self.names[result.name] = last(result.end._extent) if isinstance(result.end, IndexTracer) else result.end
                continue
            if storage not in made:
                value = items[position + len(made)]
                made[storage] = fresh_array(value) if storage.writable else fresh(value)
                made[storage]._storage.layout = storage.layout
            found = handle(made[storage]._storage, result.end._chain, result.end._type)
            found._kind = result.end._kind
            self.names[result.name] = found


def _nothing_like(x: Any) -> Any:
    """Zeros in the place of a value that nobody reads, because there is a flag for that."""
    def zero(leaf: Any) -> Any:
        if not isinstance(leaf, Tracer):
            return leaf
        if not leaf._type.is_fixed:
            not_capturable(f"a value of shape {leaf._type.shape} leaves the loop")
        if isinstance(leaf._kind, type):
            return leaf._kind(0)
        found = np.zeros(leaf.shape, leaf.dtype)
        return found if leaf._type.shape or leaf._storage.writable else found[()]
    return tree.map(zero, x)


def is_in_c_order(x: Any) -> bool:
    """Whether an array lies in memory in C order, whatever the arguments do."""
    if not isinstance(x, Tracer):
        return bool(x.flags.c_contiguous)
    layout = x._storage.layout
    return not x._chain and (layout is None or layout is C_ORDER or (layout.settled and layout.strides() is None))


def _whole(storage: Storage) -> Tracer:
    return handle(storage, (), storage.type)


def can_be_carried(x: Any) -> bool:
    """Whether it is made of numbers and arrays, and no list that others may hold."""
    leaves = tree.leaves(x)
    return not isinstance(x, list | dict) and bool(leaves) and all(is_number(leaf) or isinstance(leaf, Tracer) or hasattr(
        leaf, "__array_interface__") for leaf in leaves)


def _moves(step: Any) -> bool:
    if isinstance(step, StridedView):
        return any(isinstance(part, Affine) for cut in step.slices for part in (cut.start, cut.size))
    return isinstance(step, ReshapeView) and any(isinstance(part, Affine) for part in step.shape)


# ----- counted loops
def counted(body: Callable[[Any], None], variables: Variables, elements: Elements, policy: Policy) -> None:
    """Record a loop over elements of which the number is an extent of at least one."""
    names, count = Names(body), elements.count
    index = Index(0, add_extents(count, -1), variables.stored[0] if variables.stored else "i")

    def run() -> None:
        body(elements.at(call(index_handle, index.extent())))

    traceable = Traceable(names, variables, run, site_of(body))
    try:
        leaves, traced = attempted(lambda: traceable.traced(body.__name__), policy)
        result = traced.result
        if not result.lifted and not result.captured and not any(isinstance(leaf, Tracer) for name in traceable.order()
                                                                  for leaf in tree.leaves(traceable.entry[name])):
            not_capturable("")                     # computes with numbers that are known
        whole = [number for number, leaf in enumerate(leaves) if leaf.kind is int]
        if may_overflow(result.graph, whole):
            not_capturable("it computes with an integer that may have more than 64 bits")
        if lower(count) < 1 and any(result.name not in traceable.carried for result in traceable.results):
            not_capturable("the loop may have no iterations, and a variable that it binds is used after it")
        items = call(_emit, leaves, traced, index)
    except NotCapturable:
        names.restore(traceable.entry)
        raise

    def last(extent: Affine) -> Any:
        return call(index_handle, substitute(extent, {index: index.hi}))

    traceable.place(leaves, items, last)


def attempted(trace: Callable[[], _Found], policy: Policy, keep: bool = False) -> _Found:
    """A traced body; any error of the user's code says that it cannot be captured, unless it is to be kept."""
    policy.depth += 1
    policy.own.append({})
    region = open_region()
    refusal = region.refusal
    try:
        return trace()
    except Exception as error:
        if keep:
            raise
        region.refusal = refusal
        raise NotCapturable(_first_line(error), getattr(error, "source", None)) from error
    finally:
        policy.depth -= 1
        policy.own.pop()


def _first_line(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text if isinstance(error, BwError) else f"{type(error).__name__}: {text}"


def _emit(leaves: Sequence[Leaf], traced: Traced, index: Index) -> list[Value]:
    """The loop op: values of what it carries, then the last ones of what is only made in it."""
    result = traced.result
    outer = Outer([result])
    carried, final, read = outer.inputs(result)
    count = len(leaves)
    made = result.outputs[count:]
    for value in made:
        if mentions_index({"shape": value.shape}):
            not_capturable(f"an array of shape {value.shape}, which depends on the iteration, is used after the loop")
    arguments, held = list(result.graph.inputs[:count]), [input_value(value.type) for value in made]
    with added() as record:
        after = as_kind(result.outputs[:count], [leaf.kind for leaf in leaves])
    graph = region_graph(result, [*arguments, *held, *carried, *read], record, [*after, *made, *final], index)
    start = [*[leaf.value for leaf in leaves], *[zeros(value) for value in made], *outer.assigned_values()]
    looped = ops.loop(*start, *outer.read_values(), lo=index.lo, hi=index.hi, step=1, carried=len(start), body=graph)
    items = [ops.item(looped, index=k) for k in range(len(start))]
    outer.assign(items[count + len(made):])
    return items[:count + len(made)]


def zeros(value: Value) -> Value:
    """Zeros like a value, in the current record."""
    return ops.full(value=zero_of(value.dtype), shape=value.shape, dtype=value.dtype)
