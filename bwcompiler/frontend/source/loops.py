"""Loops of captured code: `for`, `while` and comprehensions.  They are recorded if possible and worthwhile, else run step by step."""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import CodeType
from typing import Any

import numpy as np

from bwcompiler.errors import TracerBoolError, TracerError, at
from bwcompiler.frontend.numpy.selected.packing import guarded, merged
from bwcompiler.frontend.source.array_backed.growth import Unbounded, refuse_whole
from bwcompiler.frontend.source.bodies import iteration
from bwcompiler.frontend.source.bodies.branches import branch
from bwcompiler.frontend.source.bodies.capture import MOST_COPIES, SHORT
from bwcompiler.frontend.source.bodies.counted_loops import counted
from bwcompiler.frontend.source.bodies.data_loops import for_loop, while_loop
from bwcompiler.frontend.source.bodies.known_loops import counted_while
from bwcompiler.frontend.source.bodies.plain_loops import computes_with_known, running
from bwcompiler.frontend.source.changes import own
from bwcompiler.frontend.source.concrete.contents import live, read_items
from bwcompiler.frontend.source.concrete.texts import require_known
from bwcompiler.frontend.source.decisions import NO_VARIABLES, TOTAL, decided, elements, if_, not_, nothing
from bwcompiler.frontend.source.effects.places import scopes_around
from bwcompiler.frontend.source.generators import Generated
from bwcompiler.frontend.source.guarded_loops import guarded_for, guarded_while, under_tests
from bwcompiler.frontend.source.items import iterable
from bwcompiler.frontend.source.library.builtin_functions import as_int
from bwcompiler.frontend.source.syntax.names import ITEM, Variables
from bwcompiler.frontend.source.syntax.statements.jumps import DONE, RETURNING
from bwcompiler.frontend.source.undecided.lists import gaps
from bwcompiler.frontend.source.unrolling import (
    SHORTEST,
    Unrolled,
    is_heavy_behind,
    is_long_enough,
    is_short,
    reconsider_around,
    recorded,
    unrolling,
)
from bwcompiler.frontend.source.variables import Names, NotCapturable, open_policy, site_of
from bwcompiler.frontend.tracing.assumed import assumed_count, assumed_truth
from bwcompiler.frontend.tracing.indexing.masked_selection import Selection
from bwcompiler.frontend.tracing.policy import Policy, Reconsidered, Site
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.storages.region import open_region
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.extent import Extent, add_extents

MOST_GUARDED = 10_000          # iterations that are traced under a condition each, of a loop whose end is data: it may have none
MOST_ENDLESS = 1000            # likewise of an iterator whose length is not known: all are traced before it is refused
MOST_FILLING = 64              # iterations in which a list of a loop may get as long as it is in the others
MOST_PARTED = 6                # loops that are recorded in two parts, one inside of the other
PARTS = 3                      # that a loop has in the end, mostly: two borders, and what is between
MANY = 256                     # elements of a list with room, of which most are not there, perhaps
MOST_ITEMS = 100_000           # that are taken from itertools.product and its like to see whether there are more
_FINITE = (itertools.product, itertools.combinations, itertools.combinations_with_replacement, itertools.permutations)


def listed(fill: Callable[[list[Any]], None]) -> list[Any]:
    """The list that a comprehension makes: fill(list) appends to it."""
    found: list[Any] = own([])
    fill(found)
    return found


def summed(fill: Callable[[Any], None]) -> list[Any]:
    """What a comprehension makes of which only the sum is wanted: the sum alone, where nobody knows how many elements there are."""
    found: list[Any] = own([])
    try:
        with _summing(found):
            fill(found)
    except (Unbounded, TracerError) as refused:
        if found or not any(isinstance(one, Unbounded) for one in (refused, refused.__context__)):
            raise
        total = own({TOTAL: 0})
        fill(total)
        return [total[TOTAL]]
    return found


@contextmanager
def _summing(found: list[Any]) -> Iterator[None]:
    policy = open_policy()
    if policy is None:
        yield
        return
    before, policy.summed = policy.summed, found
    try:
        yield
    finally:
        policy.summed = before


def each(source: Any, body: Callable[[Any], None]) -> None:
    """A loop of a comprehension."""
    source = gaps.taken(source)
    is_long = not gaps.has_gaps(source) or any(isinstance(part, gaps.Block) for part in gaps.segments(source))
    if open_policy() is not None and not isinstance(source, Selection) and is_long:
        for_(source, body, NO_VARIABLES, is_tried=True)
        return
    if isinstance(source, Selection) and _captured_selection(source, body, open_policy()):
        return
    for present, item in elements(source):
        def where_there(item: Any = item) -> None:
            body(item)
        if_(present, where_there, nothing, NO_VARIABLES)


def _captured_selection(source: Selection, body: Callable[[Any], None], policy: Policy | None) -> bool:
    """Whether a loop over all elements was recorded, which asks of each whether it is selected."""
    if policy is None or not policy.loops or source.lead or site_of(body) in policy.unrolled or source.where.size < SHORT:
        return False
    rows = merged(source)
    array = guarded(rows)

    def where_selected(number: Any) -> None:
        branch(rows.where[number], _of_item(body, array[number]), nothing, Variables(*NO_VARIABLES), Names(body), policy)
    return _is_recorded(where_selected, rows.where.shape[0], Variables(*NO_VARIABLES), body, policy)


def for_(source: Any, body: Callable[[Any], None], variables: tuple[tuple[str, ...], ...], flag: str | None = None,
         is_tried: bool = False) -> None:
    """for item in source: body(item); until the variable `flag` is true.

    is_tried: it is recorded only if it computes with traced values.
    """
    policy = open_policy()
    if type(source) is Generated and policy is not None and policy.loops:
        source.run(body, Variables(*variables), flag)
        return
    source = _gone_over(source, policy)
    elements = None if policy is None or not policy.converting else iteration.elements_of(source)
    if is_tried and elements is not None:
        elements = elements._replace(is_tried=True)
    names = Variables(*variables)
    steps = _StepByStep(elements, body, names, flag, policy)
    around: AbstractContextManager[None] = nullcontext()
    if policy is not None and elements is not None and _pays(elements, policy, body):
        if computes_with_known(source, elements.count, body, policy):
            around = running(body, elements.count, policy)
        else:
            captured = _captured(elements, body, names, flag, policy)
            if captured:
                return
            steps.rest_is_tried, steps.ahead = captured is None, policy.ahead
    with around:
        steps.run(source if gaps.has_gaps(source) else read_items(iterable(source)))


class _StepByStep:
    """A loop whose iterations are traced one after the other.

    rest_is_tried   whether those behind the first `ahead` may be a loop: the first may be unlike the others.
    """

    def __init__(self, elements: iteration.Elements | None, body: Callable[[Any], None], names: Variables, flag: str | None,
                 policy: Policy | None) -> None:
        self.elements, self.body, self.names, self.flag, self.policy = elements, body, names, flag, policy
        self.rest_is_tried, self.ahead = False, 1
        self.held = None if flag is None else Names(body)
        self.tested = names._replace(results=tuple(dict.fromkeys((*names.carried, *names.results, *([] if flag is None else [flag])))))

    def run(self, source: Any) -> None:
        """Trace the iterations, until the loop ends or the rest of it is recorded."""
        policy = self.policy
        if policy is not None and gaps.has_gaps(source) and self.flag is None:
            source = _captured_blocks(source, self.body, self.names, self.tested, policy)
        elements_left = iter(source)
        with unrolling(policy, self.elements, site_of(self.body)) as around:
            for number in itertools.count():
                around.number = number
                if policy is not None and len(policy.unrolling) > 1:
                    reconsider_around(policy)
                done = False if self.held is None or self.flag is None else self.held[self.flag]
                if not isinstance(done, Tracer) and done:
                    return
                try:
                    element = next(elements_left)
                except StopIteration:
                    return
                going = not_(done) if isinstance(done, Tracer) else True
                has_returned = going is not True and str(self.flag).startswith(RETURNING) and type(element) is not gaps.Maybe
                if type(element) is gaps.Maybe:
                    going, element = np.logical_and(going, element.present), gaps.handed_out(element.value)
                if isinstance(going, Tracer) and policy is not None:
                    self._run_if(going, element, number, policy, has_returned)
                else:
                    self._run_one(element, number, around)
                if self.rest_is_tried and number + 1 == self.ahead and self._is_rest_captured():
                    return

    def _run_if(self, going: Tracer, element: Any, number: int, policy: Policy, has_returned: bool) -> None:
        """An iteration that data decide about; has_returned: where it does not run, the function has returned."""
        if number == (MOST_ENDLESS if self.elements is None else MOST_GUARDED):
            raise _endless(policy.notes.get(site_of(self.body), "it goes over an iterator"))
        branch(going, _of_item(self.body, element), nothing, self.tested, Names(self.body), policy, has_returned)

    def _run_one(self, element: Any, number: int, around: Unrolled) -> None:
        """An iteration that is run; the first of a short loop is measured."""
        if number or self.elements is None or self.policy is None or not is_short(self.elements, self.policy):
            self.body(element)
            return
        around.begin()
        self.body(element)
        self.rest_is_tried = self.rest_is_tried or is_heavy_behind(around, self.policy, recorded(around.before))
        around.region = None

    def _is_rest_captured(self) -> bool:
        """Whether the iterations behind this one are recorded as a loop."""
        assert self.elements is not None and self.policy is not None
        captured = _captured(self.elements.after(self.ahead), self.body, self.names, self.flag, self.policy, may_peel=False)
        self.rest_is_tried = captured is None and self.ahead < MOST_FILLING
        self.ahead += self.policy.ahead
        return bool(captured)


def _gone_over(source: Any, policy: Policy | None) -> Any:
    """What a loop goes over, as a list where that is known to end; refused where it cannot be known."""
    source = live(gaps.taken(source))
    if policy is not None and policy.depth and type(source) is dict:
        refuse_whole(source)
    if policy is not None and type(source) in _FINITE and not scopes_around(source):
        items = list(itertools.islice(source, MOST_ITEMS))
        source = itertools.chain(items, source) if len(items) == MOST_ITEMS else own(items)
    if type(source) is str:
        require_known(source)
    return source


def _endless(why: str) -> TracerError:
    return TracerError(at(current_source(open_region().outer), "the end of this loop depends on traced values, and it cannot be recorded: "
                          f"{why}\n  hint: for _ in range(n), with a `break`"))


def _captured_blocks(source: Any, body: Callable[[Any], None], names: Variables, tested: Variables, policy: Policy) -> Iterator[Any]:
    """The elements of a list; but where a loop has appended some of them, as data decided, a loop over those is recorded instead."""
    for part in gaps.segments(source):
        if not isinstance(part, gaps.Block):
            yield from part
        elif not policy.loops or site_of(body) in policy.unrolled or not _captured_block(part, body, names, tested, policy):
            yield from gaps.unpacked([part])


def _captured_block(block: gaps.Block, body: Callable[[Any], None], names: Variables, tested: Variables, policy: Policy) -> bool:
    """Whether a loop over what a loop has appended was recorded: of those that are there, if they are the first of many, or of all."""
    if block.is_prefix and block.count >= MANY:
        there = iteration.Elements(as_int(np.sum(block.present)), lambda k: gaps.handed_out(block.row(k)))
        try:
            for_loop(there, body, names, None, policy)
        except NotCapturable as refused:
            policy.notes.setdefault(site_of(body), refused.reason)
        else:
            return True

    def where_there(number: Any) -> None:
        branch(block.present[number], _of_item(body, gaps.handed_out(block.row(number))), nothing, tested, Names(body), policy)
    return _is_recorded(where_there, block.count, under_tests(names, Names(body)), body, policy)


def _is_recorded(each: Callable[[Any], None], count: int, names: Variables, body: Callable[[Any], None], policy: Policy) -> bool:
    """Whether a loop over all elements that there may be was recorded: each(number) runs `body` where there is one."""
    try:
        counted(each, names, iteration.Elements(count, lambda k: k), policy, body)
    except NotCapturable as refused:
        policy.notes.setdefault(site_of(body), refused.reason)
        return False
    return True


def _of_item(body: Callable[[Any], None], item: Any) -> Callable[[], None]:
    """The body of a loop for one element; that of a comprehension is an expression, which has a value."""
    def run() -> None:
        body(item)
    return run


def unrolled(source: Any, reason: str) -> Any:
    """What a loop goes over that keeps its form; noted, if it is long and traced values are computed in it."""
    policy = open_policy()
    read_items(source)
    if policy is None:
        return source
    frame = sys._getframe(1)
    return _noting(source, (frame.f_code.co_filename, frame.f_lineno, 0), reason, policy)


def _noting(source: Any, site: Site, reason: str, policy: Policy) -> Iterator[Any]:
    before = len(open_region().record.values)
    for number, item in enumerate(source):
        if number == SHORT and len(open_region().record.values) > before:
            policy.notes.setdefault(site, reason)
        yield item


def _captured(elements: iteration.Elements, body: Callable[[Any], None], names: Variables, flag: str | None, policy: Policy,
              may_peel: bool = True) -> bool | None:
    """Whether a loop was recorded, None where perhaps all its iterations but the first can be, or the first `Policy.ahead`; raises where it
    has to be, and cannot."""
    try:
        if flag is not None or isinstance(elements.count, Tracer) or site_of(body) in policy.by_data:
            for_loop(elements, body, names, flag, policy)
        else:
            counted(body, names, elements, policy, divisible=isinstance(elements.count, int) and elements.count > iteration.MOST_PARTS * 2,
                    parted=policy.parts < MOST_PARTED, may_peel=may_peel)
        return True
    except NotCapturable as refused:
        if refused.end is not None:
            _in_parts(elements, body, names, policy, refused.end)
            return True
        if flag is not None and isinstance(elements.count, int) and SHORT <= elements.count < MOST_GUARDED:
            if may_peel:                           # the first iteration runs whatever data say
                policy.ahead = 1
                return None
            return _captured_guarded(elements, body, names, flag, policy, refused)
        if policy.parts and not policy.as_data and flag is None and _captured_as_data(elements, body, names, policy):
            return True
        if refused.repeat > 1 and flag is None and isinstance(elements.count, int) and elements.count >= refused.repeat * 2:
            return _repeated(elements, body, names, policy, refused.repeat)
        if isinstance(elements.count, Tracer):
            count = assumed_count(elements.count)
            if count is not None:
                for_(iteration.Part(elements, 0, count), body, tuple(names), flag)
                return True
            raise TracerError(at(current_source(open_region().outer), "the number of iterations of this loop depends on traced values, and "
                                 f"it cannot be recorded: {refused.told('a fixed number of iterations with np.where')}")) from None
        if not isinstance(elements.count, int):
            raise
        least = SHORTEST if site_of(body) in policy.heavy else SHORT
        if (may_peel or refused.fills) and refused.peel and elements.count - refused.peel >= least:
            policy.ahead = int(refused.peel)
            return None
        if refused.reason:
            policy.notes.setdefault(site_of(body), refused.reason)
        else:
            policy.plain.add(site_of(body))
        return False


def _captured_guarded(elements: iteration.Elements, body: Callable[[Any], None], names: Variables, flag: str, policy: Policy,
                      refused: NotCapturable) -> bool:
    """Whether a loop that is left early was recorded as one of all its iterations, each of which asks whether it has been left."""
    try:
        guarded_for(elements, body, names, flag, policy)
    except NotCapturable:
        policy.notes.setdefault(site_of(body), refused.reason)
        return False
    return True


def _in_parts(elements: iteration.Elements, body: Callable[[Any], None], names: Variables, policy: Policy, end: Extent) -> None:
    """A loop that is two loops, the first of which ends with iteration `end`."""
    start = add_extents(end, 1)
    copies = policy.copies
    policy.parts, policy.copies = policy.parts + 1, copies * PARTS
    try:
        for_(iteration.Part(elements, 0, start), body, tuple(names), is_tried=elements.is_tried)
        for_(iteration.Part(elements, start, elements.count), body, tuple(names), is_tried=elements.is_tried)
    finally:
        policy.parts, policy.copies = policy.parts - 1, copies


def _captured_as_data(elements: iteration.Elements, body: Callable[[Any], None], names: Variables, policy: Policy) -> bool:
    """Whether a part of a loop was recorded with slices between bounds that are data: not all can be done with shapes that move."""
    policy.as_data = True
    try:
        counted(body, names, elements, policy)
        return True
    except NotCapturable:
        return False
    finally:
        policy.as_data = False


def _repeated(elements: iteration.Elements, body: Callable[[Any], None], names: Variables, policy: Policy, period: int) -> bool:
    """A loop of which `period` iterations are recorded as one; the rest is unrolled."""
    def several(first: Any) -> None:
        for number in range(period):
            body(elements.at(first * period + number))

    whole = elements.count // period
    try:
        counted(several, names, iteration.Elements(whole, lambda k: k, is_tried=elements.is_tried), policy, body)
    except NotCapturable as refused:
        policy.notes.setdefault(site_of(body), refused.reason)
        return False
    for number in range(whole * period, elements.count):
        body(elements.at(number))
    return True


def _pays(elements: iteration.Elements, policy: Policy, body: Callable[..., Any]) -> bool:
    """Whether a loop is to be captured: it is long enough, or its length is not known."""
    site = site_of(body)
    if (type(elements.count) is int and elements.count == 1) or (elements.is_table and site not in policy.heavy):
        return False
    if isinstance(elements.count, int) and (not policy.loops or site in policy.unrolled):
        if site in policy.unrolled and elements.count >= SHORT:
            policy.notes.setdefault(site, policy.unrolled[site])
        return False
    if not isinstance(elements.count, int) or elements.count >= SHORT:
        return True
    if site in policy.notes:                       # it was refused before: in a function that is called again and again
        return False
    if site in policy.heavy:
        return True
    least = SHORTEST if elements.is_tried else 1   # comprehensions often make vectors of three
    copies = policy.copies * elements.count * 2 ** _nested(body.__code__)
    return elements.count > least and copies > MOST_COPIES


@functools.cache
def _nested(code: CodeType) -> int:
    """How many loops stand one inside of the other in the body of a loop."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return max([_nested(one) + (one.co_varnames[:1] == (ITEM,)) for one in inner], default=0)


def while_(test: Callable[[], Any], body: Callable[..., None], variables: tuple[tuple[str, ...], ...],
           parts: tuple[Callable[[], Any], ...] = (), bound: Callable[[], Any] | None = None) -> None:
    """while test(): body(); parts: of the test, which all have to hold; bound: of the length of a list, which the test gives."""
    policy, names, is_assumed = open_policy(), Variables(*variables), False
    for number in itertools.count():
        going = decided(test())
        going = bool(going) if is_assumed else going
        if isinstance(going, Tracer):
            assert policy is not None
            try:
                while_loop(going, test, body, names, policy, None if bound is None else bound())
            except TracerBoolError:
                if number and site_of(body) not in policy.heavy and any(name.startswith(DONE) for name in names.stored):
                    raise Reconsidered(site_of(body)) from None
                if not number and _guarded(test, parts, body, names, policy):
                    return
                going = assumed_truth(going)
                if going is None:
                    raise
                is_assumed = True
            else:
                return
        if not going or (number <= 1 and policy is not None and policy.converting and _known(test, body, names, policy, number == 0)):
            return
        if number == 0 and policy is not None and site_of(body) in policy.heavy and _guarded(test, parts, body, names, policy):
            return
        body()


def _guarded(test: Callable[[], Any], parts: tuple[Callable[[], Any], ...], body: Callable[..., None], names: Variables,
             policy: Policy) -> bool:
    """Whether a loop that is refused as one that data end was recorded as one of all iterations that there may be."""
    region = open_region()
    held, refusal = Names(test, body).held(names.stored), region.refusal
    try:
        return policy.loops and guarded_while(test, parts, body, names, policy)
    except (NotCapturable, TracerError):
        Names(test, body).restore(held)
        region.refusal = refusal
        return False


def _known(test: Callable[[], Any], body: Callable[..., None], names: Variables, policy: Policy, may_peel: bool) -> bool:
    """Whether a loop whose test is known was recorded as one of a number of iterations; may_peel: it is tried after the next one, too."""
    site = site_of(body)
    if not policy.loops or site in policy.unrolled or site in policy.uncounted:
        return False
    try:
        found = counted_while(test, body, names, policy)
    except NotCapturable:
        if may_peel:
            return False
        found = None
    if found is None or not is_long_enough(found.iterations, found.body, policy):
        policy.uncounted.add(site)
        return False
    elements = found.elements()
    captured = _captured(elements, body, names, None, policy)
    if captured is None:
        ahead = policy.ahead
        for _ in range(ahead):
            body()
        captured = _captured(elements.after(ahead), body, names, None, policy, may_peel=False)
        for _ in range(0 if captured else found.iterations - ahead):
            body()
        captured = True
    if captured:
        found.settle()
    return captured
