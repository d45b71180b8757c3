"""Loops whose end depends on data, and that cannot be recorded as such: recorded as loops of all possible iterations, each under a test.

    while k < 10 and error > tolerance:         for j in range(10):
        h = Q[:, :k + 1].T @ v             as       if k < 10 and error > tolerance:
        ...                                             k = j
        k += 1                                          ...

Where the test holds, `k` is affine in the iteration number, so slices may begin and end there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from bwcompiler import ops
from bwcompiler.errors import TracerError
from bwcompiler.frontend.source.array_backed.growth import POISON
from bwcompiler.frontend.source.bodies.branches import branch
from bwcompiler.frontend.source.bodies.counted_loops import counted
from bwcompiler.frontend.source.bodies.iteration import Elements
from bwcompiler.frontend.source.decisions import decided, not_, nothing
from bwcompiler.frontend.source.effects.places import Scope, attempted
from bwcompiler.frontend.source.syntax.names import Variables
from bwcompiler.frontend.source.syntax.statements.jumps import DONE
from bwcompiler.frontend.source.variables import UNBOUND, Again, Names, NotCapturable, not_capturable, site_of
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.handles import value_of
from bwcompiler.frontend.tracing.indexing.index_handle import extent_of
from bwcompiler.frontend.tracing.policy import Policy
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.extent import Extent
from bwcompiler.ir.op import Value

MOST = 1000                    # iterations that are counted
MOST_UNROLLED = 64             # that are traced one by one, under a condition each


def guarded_for(elements: Elements, body: Callable[[Any], None], variables: Variables, flag: str, policy: Policy) -> None:
    """A loop over elements of a number that is known, until a flag is set; raises NotCapturable."""
    names = Names(body)
    more = under_tests(variables, names, flag)

    def where_going(k: Any) -> None:
        _branch(not_(names[flag]), partial(body, elements.at(k)), more, names, policy)

    counted(where_going, more, Elements(elements.count, lambda k: k), policy, body)


def guarded_while(test: Callable[[], Any], parts: Sequence[Callable[[], Any]], body: Callable[..., None], variables: Variables,
                  policy: Policy) -> bool:
    """Whether `while test(): body()` was recorded so, from its first iteration on; raises NotCapturable, or what the user is told.

    parts: of the test, which all have to hold.
    """
    names = Names(test, body)
    now = names.held(variables.stored)
    steps = {name: 1 for name, value in now.items() if type(value) is int and not names.is_place(name)}
    while steps:
        count = _most(parts, names, now, steps, policy)
        if count is None:
            if -1 in steps.values():
                return False
            steps = dict.fromkeys(steps, -1)
            continue
        wrong: list[str] = []                      # what was thought to count, and does not
        try:
            _record(test, body, variables, names, {name: (now[name], step) for name, step in steps.items()}, count, policy, wrong)
            return True
        except (NotCapturable, TracerError):
            if not wrong:
                raise
            names.restore(now)
            if steps.pop(wrong[0]) == 1:
                steps[wrong[0]] = -1
    return False


def _record(test: Callable[[], Any], body: Callable[..., None], variables: Variables, names: Names, steps: dict[str, tuple[int, int]],
            count: int, policy: Policy, wrong: list[str]) -> None:
    def iteration(k: Any) -> None:
        for name, (start, step) in steps.items():
            names[name] = start + k * step
        body()
        for name, (start, step) in steps.items():
            after = extent_of(start + (k + 1) * step)
            if extent_of(names[name]) != after and not call(_counts_or_ends, names, name, flag, after):
                wrong.append(name)
                not_capturable(f"{name} does not grow by the same number in each iteration")

    more, flag = under_tests(variables, names), _flag(test, names, names.held(variables.stored), policy)

    def where_going(k: Any) -> None:
        _branch(decided(test()), partial(iteration, k), more, names, policy)

    entry = names.held(variables.stored)
    try:
        if site_of(body) in policy.unrolled:
            not_capturable(policy.unrolled[site_of(body)])
        counted(where_going, more, Elements(count, lambda k: k), policy, body)
    except NotCapturable:
        if wrong or count > MOST_UNROLLED:
            raise
        names.restore(entry)
        for number in range(count):
            where_going(number)


def _counts_or_ends(names: Names, name: str, flag: str, after: Extent) -> bool:
    """Whether a variable is `after` at the end of an iteration, or the flag is set that ends the loop, whatever branches were taken."""
    count = names[name]
    if not isinstance(count, Tracer) or not flag:
        return False
    done = names[flag]
    return _holds(value_of(count), value_of(done) if isinstance(done, Tracer) else done, after)


def _holds(count: Value, done: Any, after: Extent) -> bool:
    if done is True or (isinstance(done, Value) and done.op is ops.full and done.attrs["value"] is True):
        return True
    if count.op is ops.index_value:
        return bool(count.attrs["extent"] == after)
    if count.op is ops.full:
        return bool(count.attrs["value"] == after)
    if count.op is not ops.item or count.operands[0].op is not ops.cond:
        return False
    decided_by = count.operands[0]
    is_together = isinstance(done, Value) and done.op is ops.item and done.operands[0] is decided_by
    for side in ("then_branch", "else_branch"):
        outputs = decided_by.attrs[side].outputs
        if not _holds(outputs[count.attrs["index"]], outputs[done.attrs["index"]] if is_together else None, after):
            return False
    return True


def _is_false(test: Callable[[], Any]) -> bool:
    """Whether it is known that a test does not hold: it asks for no data."""
    try:
        going = decided(test())
    except NotCapturable:
        return False
    return not isinstance(going, Tracer) and not going


def _flag(test: Callable[[], Any], names: Names, entry: dict[str, Any], policy: Policy) -> str:
    """The flag that ends the loop where it is set; "" where it has none."""
    def ends(flag: str) -> bool:
        names.restore({name: POISON for name, held in entry.items() if held is not UNBOUND})
        names[flag] = True
        return _is_false(test)

    try:
        return next((name for name in entry if name.startswith(DONE) and attempted(partial(ends, name), policy, Scope())), "")
    except (NotCapturable, Again):
        return ""
    finally:
        names.restore(entry)


def _branch(going: Any, run: Callable[[], None], variables: Variables, names: Names, policy: Policy) -> None:
    if isinstance(going, Tracer):
        branch(going, run, nothing, variables, names, policy)
    elif going:
        run()


def under_tests(variables: Variables, names: Names, *flags: str) -> Variables:
    """The variables of a loop whose iterations run where a test holds: what is read afterwards is carried, too, for the others leave it."""
    results = [name for name in variables.results if names[name] is not UNBOUND]
    carried = tuple(dict.fromkeys((*variables.carried, *flags, *results)))
    return variables._replace(stored=tuple(dict.fromkeys((*variables.stored, *flags))), carried=carried,
                              results=tuple(dict.fromkeys((*carried, *variables.results))))


def _most(parts: Sequence[Callable[[], Any]], names: Names, now: dict[str, Any], steps: dict[str, int], policy: Policy) -> int | None:
    """How many iterations there are at most, as the test says of what counts alone; None where it does not."""
    def count() -> int | None:
        for name, value in now.items():
            if name not in steps and value is not UNBOUND:
                names[name] = False if name.startswith(DONE) else POISON
        for number in range(MOST + 1):
            for name, step in steps.items():
                names[name] = now[name] + number * step
            if any(map(_is_false, parts)):
                return number
        return None

    try:
        return attempted(count, policy, Scope())
    except (NotCapturable, Again):
        return None
    finally:
        names.restore(now)
