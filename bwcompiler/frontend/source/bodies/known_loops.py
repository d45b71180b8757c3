"""`while` loops whose test is known while tracing: the iterations of `while t < end: ...; t += dt` can be counted.

The body is traced once, to find how it changes the numbers that it carries.  Those that depend only on such numbers are computed
step by step until the test ends the loop; then it is recorded as a loop of that many iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bwcompiler import ops
from bwcompiler.frontend.source.array_backed.growth import POISON
from bwcompiler.frontend.source.bodies.capture import Traceable
from bwcompiler.frontend.source.bodies.iteration import Elements
from bwcompiler.frontend.source.effects.places import attempted
from bwcompiler.frontend.source.syntax.names import Variables
from bwcompiler.frontend.source.variables import UNBOUND, Again, Names, NotCapturable, site_of
from bwcompiler.frontend.tracing.control_flow.bodies import Traced
from bwcompiler.frontend.tracing.policy import Policy
from bwcompiler.frontend.tracing.promotion import Kind
from bwcompiler.frontend.tracing.tracer import Tracer
from bwcompiler.ir.extent import Index
from bwcompiler.ir.graph import Graph
from bwcompiler.ir.op import Value
from bwcompiler.ir.types import TensorType

MOST = 1 << 16                 # iterations that are counted
_EXACT = 1 << 53               # integers below are what Python and floats have
_OPS = frozenset((                 # that compute what Python computes
    ops.absolute, ops.add, ops.cast, ops.divide, ops.equal, ops.floor_divide, ops.greater, ops.greater_equal, ops.less, ops.less_equal,
    ops.maximum, ops.minimum, ops.multiply, ops.negative, ops.not_equal, ops.remainder, ops.select, ops.subtract))


class Counted(NamedTuple):
    """How many iterations there are, what the numbers are after them; start and step of variables that grow by one number in each; and
    the body of one, as it was traced for that."""

    iterations: int
    names: Names
    finals: dict[str, Any]
    steps: dict[str, tuple[int, int]]
    traced: Traceable
    body: Graph

    def elements(self) -> Elements:
        """What the loop goes over: nothing, but before each iteration variables that count are affine in its number."""
        def begin(k: Any) -> None:
            for name, (start, step) in self.steps.items():
                self.names[name] = start + k * step
        return Elements(self.iterations, begin, self.traced)

    def settle(self) -> None:
        """After the loop: these numbers are known."""
        for name, value in self.finals.items():
            self.names[name] = value


def counted_while(test: Callable[[], Any], body: Callable[[], None], variables: Variables, policy: Policy) -> Counted | None:
    """Of `while test(): body()`; None where that cannot be known.  The first test has been true.

    Raises NotCapturable where perhaps it can after an iteration, which is another one than the others.
    """
    names = Names(test, body)
    traceable = Traceable(names, variables, body, site_of(body), MOST, Index(0, MOST - 1, "i"))
    policy.counting += 1
    try:
        _, traced = attempted(lambda: traceable.traced(body.__name__), policy, traceable.scope)
    except NotCapturable as error:
        if error.peel:
            raise
        return None
    finally:
        policy.counting -= 1
    traceable.restore()
    try:
        return attempted(lambda: _count(traceable, traced, test), policy, traceable.scope)     # so that it may do nothing but compute
    except (NotCapturable, Again):
        return None
    finally:
        traceable.restore()


def _count(traceable: Traceable, traced: Traced, test: Callable[[], Any]) -> Counted | None:
    names, entry = traceable.names, traceable.entry
    inputs: dict[str, Value] = {}
    outputs: dict[str, Value] = {}
    place = 0
    for name in traceable.order():
        kinds = traceable.kinds[name]
        if len(kinds) == 1 and isinstance(entry[name], bool | int | float | np.generic):
            inputs[name], outputs[name] = traced.result.graph.inputs[place], traced.result.outputs[place]
        place += len(kinds)
    plan = _plan(inputs, outputs)
    if not inputs:
        return None
    kinds_of: dict[str, Kind] = {name: traceable.kinds[name][0] for name in inputs}
    state = {name: entry[name] for name in inputs}
    for name in traceable.variables.stored:        # nothing else that changes may decide
        if name not in inputs and entry.get(name, UNBOUND) is not UNBOUND:
            names[name] = POISON
    for growth in traceable.growths.values():
        growth.begin()
    own = {name for name in inputs if type(entry[name]) is int and not names.is_place(name)} - traceable.apart.parts
    steps: dict[str, tuple[int, int]] = {}
    for count in range(MOST):
        for name, value in state.items():
            names[name] = value
        traceable.apart.begin()
        going = test()
        if isinstance(going, Tracer):
            return None
        if not going:
            return Counted(count, names, state, steps, traceable, traced.result.graph)
        following = _step(plan, inputs, outputs, state, kinds_of)
        if following is None or following == state:
            return None
        found = {name: (entry[name], following[name] - state[name]) for name in state if type(following[name]) is int}
        steps = {name: step for name, step in found.items() if name in own and steps.get(name, step) == step and (
            count == 0 or name in steps)}
        state = following
    return None


def _plan(inputs: dict[str, Value], outputs: dict[str, Value]) -> list[Value]:
    """The values that the outputs depend on, in order; those names are left that depend on each other and on constants alone."""
    while True:
        known = set(inputs.values())
        order: dict[Value, None] = {}
        bad = [name for name, value in outputs.items() if not _collect(value, known, order)]
        if not bad:
            return list(order)
        for name in bad:
            del inputs[name], outputs[name]


def _collect(value: Value, known: set[Value], order: dict[Value, None]) -> bool:
    if value in known or value in order:
        return True
    constant = value.op is ops.full and not value.operands
    if not isinstance(value.type, TensorType) or value.shape or not (constant or value.op in _OPS):
        return False
    if not all(_collect(operand, known, order) for operand in value.operands):
        return False
    order[value] = None
    return True


def _step(plan: list[Value], inputs: dict[str, Value], outputs: dict[str, Value], state: dict[str, Any],
          kinds: dict[str, Kind]) -> dict[str, Any] | None:
    """The numbers after an iteration; None where Python's would be others."""
    found: dict[Value, Any] = {value: np.asarray(state[name], value.dtype.numpy)[()] for name, value in inputs.items()}
    with np.errstate(all="ignore"):
        for value in plan:
            result = value.op.reference(*[found[operand] for operand in value.operands], **value.attrs)
            found[value] = np.asarray(result, value.dtype.numpy)[()]
    after = {}
    for name, value in outputs.items():
        number, kind = found[value], kinds[name]
        if number.dtype.kind in "iu" and abs(int(number)) >= _EXACT:
            return None
        after[name] = kind(number) if isinstance(kind, type) else kind.numpy.type(number)
    return after
