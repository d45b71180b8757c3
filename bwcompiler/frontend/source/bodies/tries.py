"""`try` with handlers for errors that depend on data: a factorisation that fails, an index out of range, a `raise` in a branch.

    try:                                     failed = whether A has no factor
        L = np.linalg.cholesky(A)      ->    if failed: value = np.inf
    except np.linalg.LinAlgError:            else:      L = np.linalg.cholesky(A); value = ...
        return np.inf

The body of a `try` first runs as in Python, until it has recorded an op that fails for some operands with an error that a handler catches.
Then the function is traced again, and this `try` is taken apart: each of its statements is recorded once to compute whether it fails
(`tracing/control_flow/failures.py`), and nothing else of that recording is kept.  The handler and the rest become the sides of a branch.
Failures inside loops or branches of the body are carried out of them as numbers.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.errors import BwError, TracerBoolError, at
from bwcompiler.frontend.source.bodies.branches import branch
from bwcompiler.frontend.source.effects.checks import Trying, passing
from bwcompiler.frontend.source.effects.places import Scope, attempted
from bwcompiler.frontend.source.syntax.names import Variables
from bwcompiler.frontend.source.syntax.statements.jumps import PREFIX
from bwcompiler.frontend.source.variables import Names, NotCapturable, open_policy, same, site_of
from bwcompiler.frontend.tracing.boundary.trace_result import TraceResult
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.control_flow.bodies import Outer, trace_body
from bwcompiler.frontend.tracing.control_flow.failures import Failure, UnknownFailureError, errors, failures, results
from bwcompiler.frontend.tracing.policy import Policy, Recapture
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.storages.region import Region, open_region
from bwcompiler.frontend.tracing.tracer import Tracer, fresh
from bwcompiler.ir.op import Value


class Body(NamedTuple):
    """Of a `try`: its statements, and which of them have others inside; the variables that are read where it has failed.

    errors: the names of what the handlers are for.
    """

    statements: Sequence[Callable[[], Any]]
    nested: Sequence[bool]
    caught: Sequence[str]
    errors: Sequence[str]


class Handler(NamedTuple):
    """What an `except` is for, what it does then, and whether it makes a difference to that which exception it is."""

    kinds: Callable[[], Any]
    run: Callable[[BaseException], Any]
    looks: bool


class Fails(NamedTuple):
    """Whether a statement raises an exception; checked: by a `raise` of the user's."""

    test: Tracer
    error: BaseException
    checked: bool


class _State(enum.Enum):
    """How a statement of a `try` runs."""

    PLAIN = enum.auto()            # as it is written: what a handler is for, and data decide, asks for tracing again
    KEPT = enum.auto()             # likewise, when nobody knows what would have to be undone: that is refused behind it
    SEEN = enum.auto()             # to see what it fails for, of which nothing stays
    ASSUMED = enum.auto()          # behind the branches for that: it does not fail


def try_(body: tuple[Any, ...], handlers: Sequence[tuple[Any, ...]], otherwise: Callable[[], Any] | None,
         variables: tuple[tuple[str, ...], ...]) -> Any:
    """A `try` statement; what is returned is the value of one that ends the function."""
    made = _Try(Body(*body), [Handler(*one) for one in handlers], otherwise, Variables(*variables))
    policy = open_policy()
    return made.recorded(policy, 0) if policy is not None and made.site in policy.unrolled else made.as_written(policy)


class _Try:
    def __init__(self, body: Body, handlers: Sequence[Handler], otherwise: Callable[[], Any] | None, variables: Variables) -> None:
        self.body = body
        self.handlers = handlers
        self.otherwise = otherwise
        self.variables = variables
        file, line, column = site_of(body.statements[0])
        self.site = file, line, ~column            # the statement may be a loop, which has a site of its own
        self.state = _State.PLAIN
        self.region: Region | None = None
        self.before_changes: list[Value] | None = None     # of what may fail: what is recorded before anything from outside is changed
        self.refusal: BwError | None = None
        self.why = "compiled code raises, but does not catch"

    def _names(self) -> Names:
        """The variables of all its parts."""
        return Names(*self.body.statements, *[one.run for one in self.handlers], *([self.otherwise] if self.otherwise else []))

    # ----- as exceptions are handled
    def handler_of(self, error: BaseException) -> Handler | None:
        return next((one for one in self.handlers if isinstance(error, one.kinds())), None)

    def catches(self, error: BaseException) -> bool:
        return self.handler_of(error) is not None

    def records(self, refusal: BwError) -> bool:
        """Whether a `raise` that data decide, and a handler is for, is to be recorded; raises where it cannot be."""
        if self.state is _State.PLAIN:
            raise Recapture(self.site, refusal)
        if self.state is _State.KEPT:
            self.refusal = refusal                 # which is given behind the statement: perhaps that is refused for another reason
            return True
        return self.state is _State.SEEN

    def note_change(self, owner: Region | None = None) -> None:
        """Something from outside is about to be changed, an array of the region `owner` perhaps: it is not where what follows fails."""
        if self.state is not _State.SEEN or self.region is None or self.before_changes is not None:
            return
        if owner is None or (owner is not self.region and owner.encloses(self.region)):
            self.before_changes = self._failing(self.region)

    def _failing(self, region: Region) -> list[Value]:
        return [value for value in region.record.values if any(map(self.catches, errors([value])))]

    def as_written(self, policy: Policy | None) -> Any:
        """What Python does."""
        found, handled = None, False
        for number in range(len(self.body.statements)):
            found, handled = self._ran(policy, number, _State.PLAIN)
            if handled:
                return found
        return found if self.otherwise is None else self.otherwise()

    def _ran(self, policy: Policy | None, number: int, state: _State) -> tuple[Any, bool]:
        """What a statement returns, or the handler of what it raises; and whether there was one."""
        try:
            with Trying(self.body.errors):
                return self._in_state(policy, self.body.statements[number], state), False
        except passing():
            raise
        except BaseException as error:
            handler = self.handler_of(error)
            if handler is None:
                raise
            return handler.run(error), True

    def _in_state(self, policy: Policy | None, run: Callable[[], Any], state: _State) -> Any:
        if policy is None:
            return run()
        region, outer = open_region(), (self.state, self.region)
        before = len(region.record.values)
        self.state, self.region = state, region
        policy.attempts.append(self)
        try:
            found = run()
        finally:
            policy.attempts.pop()
            self.state, self.region = outer
        if self.refusal is not None:
            raise Recapture(self.site, self.refusal)
        if state is _State.PLAIN and open_region() is region and self._may_catch(region, before):
            raise Recapture(self.site, TracerBoolError(at(current_source(), "a `try` was to be taken apart")))
        return found

    def _may_catch(self, region: Region, before: int) -> bool:
        return any(map(self.catches, errors(region.record.values[before:])))

    # ----- as branches
    def recorded(self, policy: Policy, first: int) -> Any:
        """The statements from `first` on, with handlers as sides of branches."""
        found: Any = None
        for number in range(first, len(self.body.statements)):
            fails = self._failures(policy, number)
            if fails:
                return self._decided(policy, number, fails)
            found, handled = self._ran(policy, number, _State.KEPT if fails is None else _State.ASSUMED)
            if handled:
                return found
        return found if self.otherwise is None else self.otherwise()

    def _decided(self, policy: Policy, number: int, fails: Sequence[Fails]) -> Any:
        """A branch for each of what the statement may fail for; then the statement, which does not, and those behind it."""
        def rest() -> Any:
            found, handled = self._ran(policy, number, _State.ASSUMED)
            if handled or (number + 1 == len(self.body.statements) and self.otherwise is None):
                return found
            return self.recorded(policy, number + 1)
        if not fails:
            return rest()
        first, *others = fails
        try:
            return branch(first.test, lambda: self._handled(policy, first.error), lambda: self._decided(policy, number, others),
                          self.variables, self._names(), policy)
        except TracerBoolError:
            if any(one.checked for one in fails):
                raise
        return rest()                              # it raises when it runs

    def _handled(self, policy: Policy, error: BaseException) -> Any:
        handler = self.handler_of(error)
        assert handler is not None
        policy.raised = error                      # for a `raise` without an exception
        try:
            raise error
        except BaseException:
            return handler.run(error)

    def _failures(self, policy: Policy, number: int) -> list[Fails] | None:
        """What a statement fails for, of what a handler catches; None where nobody knows what would have to be undone then."""
        names = self._names()
        entry = names.held(self.variables.stored)
        scope = Scope(names, self.variables, is_branch=True)
        changed: list[str] = []
        late: list[Value] = []
        scope.attempt, self.before_changes = self, None

        def traced() -> list[Tracer]:
            self._in_state(policy, self.body.statements[number], _State.SEEN)
            changed.extend(name for name, before in entry.items() if not same(before, names[name]))
            region = open_region()
            if self.before_changes is not None:
                late.extend(value for value in self._failing(region) if value not in self.before_changes)
            outputs: list[Tracer] = call(lambda: list(map(fresh, results(region.record.values))))
            return outputs
        try:
            body = attempted(lambda: trace_body(traced, "", "attempt"), policy, scope, keep=True)
        except (Exception, NotCapturable):         # which running it raises, too
            return None
        finally:
            scope.undo()
            names.restore(entry)
        read = [name for name in self.body.caught if name in changed and not name.startswith(PREFIX)]
        if self.body.nested[number] and set(changed) & set(self.body.caught):
            self.why = f"the `except` reads {', '.join(read) or 'a variable'}, which has changed by then, nobody knows how often"
            return None
        if late:
            self.why = "it may have changed an array, list or object before, which is allowed only after all that may raise"
            return None
        try:
            found: list[Fails] = call(lambda: self._found(body.result))
        except UnknownFailureError:
            return None
        return found

    def _found(self, result: TraceResult) -> list[Fails]:
        """Neighbours with the same exception are one; so are all that a handler is for to which it makes no difference which one it is."""
        outer = Outer([result])
        carried, _, inputs = outer.inputs(result)
        operands = dict(zip([*carried, *inputs], [*outer.assigned_values(), *outer.read_values()], strict=True))
        found: list[Failure] = []
        for one in failures(result.graph, [operands[value] for value in result.graph.inputs]):
            if not self.catches(one.error):
                continue
            place = next((place for place, other in enumerate(found) if self._are_one(other, one, place + 1 == len(found))), len(found))
            for before in found[place:place + 1]:
                one = Failure(ops.bitwise_or(before.where, one.where), before.error, before.checked or one.checked)
            found[place:place + 1] = [one]
        return [Fails(fresh(one.where), one.error, one.checked) for one in found]

    def _are_one(self, before: Failure, one: Failure, are_neighbours: bool) -> bool:
        """Whether two failures are handled alike."""
        handler = self.handler_of(one.error)
        if handler is not None and not handler.looks:
            return self.handler_of(before.error) is handler
        return are_neighbours and type(before.error) is type(one.error) and before.error.args == one.error.args
