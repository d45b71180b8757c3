"""Autodiff: a forward graph -> the joint graph that also computes cotangents of its inputs.

One reverse sweep over the forward values.  The driver does everything that is not a formula: accumulation, seeds,
restriction to what `wrt` and the seeds need, symbolic zeros.  Broadcasting needs no special treatment: the graph has
`broadcast` ops, whose VJP is `sum` over the new axes, as the VJP of `transpose` is the inverse transpose.  What `where` masks is
exactly zero: a `Cotangent` has a guard (`cotangents.py`).

The values that rules emit are simplified immediately, and merged with the forward values: no value is computed twice.  The result
is ordinary graph IR, so a higher derivative is this pass applied again.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bwcompiler import ops
from bwcompiler.errors import GradientError, UnsupportedError, at
from bwcompiler.ir.declaration import Absent, Into, Joint, NotDifferentiable
from bwcompiler.ir.graph import Graph, live_values
from bwcompiler.ir.op import Record, Value, constant, input_value
from bwcompiler.ir.texts.graph_printer import NO_NAMES, Names, plain_name
from bwcompiler.passes.derivatives.activity import active_values
from bwcompiler.passes.derivatives.cotangents import (
    LINEAR_IN_BOTH,
    MOVES,
    PICKS,
    PRODUCTS,
    Cotangent,
    asked_for_zeros,
    factors_under_zeros,
    under_zeros,
)
from bwcompiler.passes.derivatives.masks import COLUMNS, ROWS, is_made, left_lines, overwrites, overwritten_values, wild_values
from bwcompiler.passes.derivatives.missing import leaves_out
from bwcompiler.passes.derivatives.roots import cotangent_under
from bwcompiler.passes.pass_manager import PassRun
from bwcompiler.passes.rewriting.rewriter import Rewriter
from bwcompiler.passes.rewriting.simplify_rules import RULES

ONE = "one"            # seed 1.0, for a scalar output
INPUT_SEED = "input"   # the seed is a new input of the joint graph

NO_ORIGINS: Mapping[Value, Value] = {}


class JointGraph(NamedTuple):
    """What `differentiate` gives.  Outputs of the graph: the forward outputs, then the cotangents that are not None.

    cotangents   per entry of wrt the position among the graph's outputs, or None where the output does not depend on it.
    seeds        per forward output the input position of its seed, or None.
    captured     arrays that custom rules brought in: the last of the graph's captured inputs.
    origins      forward value of the joint graph -> the value of the graph given that it was rebuilt from.
    started      input positions of the cotangents that those of `started_from` start with.
    stopped      (value, position) where the rule of the value's op gave the operand at the position no cotangent.
    passes       what the passes that led here did.
    masked       per entry of wrt whether zeros of its cotangent may come of guards that were settled.
    """

    graph: Graph
    cotangents: tuple[int | None, ...]
    seeds: tuple[int | None, ...]
    captured: tuple[Any, ...] = ()
    origins: Mapping[Value, Value] = {}
    stopped: Sequence[tuple[Value, int]] = ()
    passes: Sequence[PassRun] = ()
    started: tuple[int, ...] = ()
    masked: tuple[bool, ...] = ()


def differentiate(graph: Graph, wrt: Sequence[int], seeds: Sequence[str | None], names: Names = NO_NAMES,
                  origins: Mapping[Value, Value] = NO_ORIGINS, started_from: Sequence[int] = (),
                  masked: Container[int] = (), inside: bool = False) -> JointGraph:
    """The joint graph of `graph`: cotangents of inputs `wrt`, for the seeds given per output (ONE, INPUT_SEED or None).

    The cotangents of the inputs `started_from` start with values that are further inputs of the joint graph, behind the seeds, and
    not with zero: so the body of a loop adds to what the iterations before it have found.

    Zeros in the seeds of the outputs `masked` may come of guards that were settled; inside: the graph is of a loop or branch.

    Calls of functions with rules of their own are expanded before, and equal values merged: merged values have one cotangent,
    so that `X @ w` written twice gives one `X.T @ ct`.

    Cotangents are named after the values of the traced graph, which have the `names` of its text if these are given; `origins`
    says which one a value of `graph` stands for.
    """
    targets = [graph.inputs[k] for k in wrt]
    explicit = len(graph.inputs) - graph.captured
    record = Rewriter(RULES)
    record.learn(graph.body)
    with record:
        label = _Label(origins, names)
        has_missing = not inside and leaves_out(graph)
        sweep = _Sweep(record, active_values(graph, targets), frozenset(graph.body), wild_values(graph, inside or has_missing), label,
                       asked_for_zeros(graph.body), inside, overwritten_values(graph.body, inside), has_missing)
        seed_inputs, positions = _seed(sweep, graph, seeds, masked)
        starts = [input_value(graph.inputs[k].type, f"{graph.inputs[k].label}.ct") for k in started_from]
        for k, start in zip(started_from, starts, strict=True):
            sweep.add(graph.inputs[k], Cotangent(start, masked=True))            # as what is added to it is
        sweep.run(graph.body)
        found = [sweep.settled(target) for target in targets]
    zeros = tuple([target in sweep.cotangents and sweep.cotangents[target].has_masked_zeros for target in targets])
    present = [value for value in found if value is not None]
    numbers = iter(range(len(graph.outputs), len(graph.outputs) + len(present)))
    outputs = [*graph.outputs, *present]
    captured = list(record.captured.values())
    inputs = (*graph.inputs[:explicit], *seed_inputs, *starts, *graph.inputs[explicit:], *[value for _, value in captured])
    body = live_values((*graph.body, *record.values), outputs)
    joint = Graph(graph.name, inputs, body, outputs, graph.index, graph.captured + len(captured))
    first = explicit + len(seed_inputs)
    return JointGraph(joint, tuple([None if value is None else next(numbers) for value in found]), tuple(positions),
                      tuple([array for array, _ in captured]), origins, sweep.stopped,
                      started=tuple(range(first, first + len(starts))), masked=zeros)


def _seed(sweep: _Sweep, graph: Graph, seeds: Sequence[str | None], masked: Container[int]) -> tuple[list[Value], list[int | None]]:
    """Give the outputs their cotangents; new inputs of the joint graph, and per output the position of its own."""
    explicit = len(graph.inputs) - graph.captured
    inputs: list[Value] = []
    positions: list[int | None] = []
    for number, (output, seed) in enumerate(zip(graph.outputs, seeds, strict=True)):
        positions.append(None)
        if seed is None or not output.dtype.is_differentiable:
            continue
        if seed == ONE:
            value = constant(1.0, output.type)
        else:
            value = input_value(output.type, sweep.label(output) if len(seeds) == 1 else f"seed{number}")
            positions[-1] = explicit + len(inputs)
            inputs.append(value)
        sweep.add(output, Cotangent(value, masked=number in masked))
    return inputs, positions


def cotangent_or_zero(found: Value | None, argument: Value) -> Value:
    """The cotangent of an argument, which is zero where nothing that was seeded depends on it."""
    return constant(0.0, argument.type) if found is None else found


def origins_of(given: Graph, *mappings: Mapping[Value, Value]) -> Mapping[Value, Value]:
    """For what the mappings, one after the other, make of the given values: the first value that it is made of."""
    if not any(mappings):
        return NO_ORIGINS
    found = {value: value for value in given.inputs}
    for value in given.body:
        now = value
        for mapping in mappings:
            now = mapping.get(now, now)
        if value.op is ops.reshape and value.name is None and now.name is not None:
            continue                               # what the user named is now computed in this shape: it has that name
        found.setdefault(now, value)
    return found


class _Label:
    """What the cotangent of a value is called."""

    def __init__(self, origins: Mapping[Value, Value], names: Names) -> None:
        self.origins = origins
        self.names = names

    def __call__(self, value: Value) -> str:
        value = self.origins.get(value, value)
        text = self.names.get(value, "")
        return f"{plain_name(text) if text.startswith('%') else value.label}.ct"


class _Sweep:
    """The reverse sweep: cotangents per value, and the rules applied to them."""

    def __init__(self, record: Record, active: set[Value], primals: frozenset[Value], wild: set[Value], label: _Label,
                 factors: set[Value], inside: bool, overwritten: set[Value], has_missing: bool) -> None:
        self.record = record
        self.active = active
        self.primals = primals
        self.wild = wild
        self.label = label
        self.inside = inside
        self.factors = factors
        self.overwritten = overwritten
        self.has_missing = has_missing               # elements of arrays, which what reads others leaves out
        self.cotangents: dict[Value, Cotangent] = {}
        self.items: dict[Value, dict[int, Cotangent]] = {}
        self.parts = _PartsOfZeros()
        self.stopped: list[tuple[Value, int]] = []

    def run(self, body: Sequence[Value]) -> None:
        for value in reversed(body):
            if value not in self.active:
                continue
            if value.op is ops.item:
                ct = self.cotangents.pop(value, None)
                if ct is not None:
                    self.items.setdefault(value.operands[0], {})[value.attrs["index"]] = ct
                continue
            self.record.source, self.record.forward = value.source, value
            if value in self.items:
                masked = any(ct.has_masked_zeros for ct in self.items[value].values())
                self._joint(value, self._item_cotangents(value), masked)
            elif value in self.cotangents:
                self._pass_on(value, self.cotangents.pop(value))
        self.record.forward = None

    def _pass_on(self, value: Value, ct: Cotangent) -> None:
        """Apply the rules of a value to its finished cotangent."""
        self._name(ct.value, value)
        ct = ct._replace(masked=True) if value in self.overwritten else ct
        vjp = value.op.vjp
        lines = self._lines_of_product(value, ct) if value.op in PRODUCTS else 0
        if value.op is ops.select:
            self._select(value, ct)
        elif lines:
            self._product(value, ct.settled(), lines)
        elif not isinstance(vjp, Joint):
            self._per_operand(value, vjp, ct)
        elif vjp.elementwise and ct.value.type.shape == value.operands[0].type.shape:
            self._joint_by_elements(value, ct)
        else:
            self._joint(value, ct.settled(), ct.has_masked_zeros)

    def add(self, target: Value, contribution: Cotangent) -> None:
        """Accumulate one contribution to the cotangent of target."""
        present = self.cotangents.get(target)
        if present is None:
            self.cotangents[target] = contribution
            return
        first, second = present.settled(), contribution.settled()
        total = self.parts.into(first, second) or self.parts.into(second, first) or ops.add(first, second)
        self.cotangents[target] = present.total(total, contribution)

    def settled(self, target: Value) -> Value | None:
        """The finished cotangent of an input."""
        self.record.source, self.record.forward = target.source, target
        ct = self.cotangents.get(target)
        if ct is None:
            return None
        value = ct.settled()
        self._name(value, target)
        return value

    def _name(self, cotangent: Value, target: Value) -> None:
        """Call it after its target, unless it has a name or is a forward value itself (a residual that a rule returned)."""
        if cotangent.name is None and cotangent not in self.primals:
            cotangent.name = self.label(target)

    def _select(self, value: Value, ct: Cotangent) -> None:
        for number in (1, 2):
            if value.operands[number] in self.active:
                self.add(value.operands[number], ct.of_side(value, number))

    def _product(self, value: Value, ct: Value, lines: int) -> None:
        """A product, of whose cotangent lines may be zeros that stand for nan: so may these lines of its factors' cotangents."""
        x, y, *others = value.operands
        operands = (*factors_under_zeros(ct, lines, x, y, self.wild), *others)
        rules: Any = value.op.vjp
        for operand, rule, own in zip(value.operands, rules, (lines & ROWS, lines & COLUMNS, lines), strict=False):
            if operand in self.active:
                self.add(operand, Cotangent(rule(ct, value, *operands, **value.attrs), masked=own > 0, lines=own))

    def _per_operand(self, value: Value, rules: Any, ct: Cotangent) -> None:
        op, operands = value.op, value.operands
        if isinstance(rules, NotDifferentiable):
            return
        by_elements = op.kind == "elementwise" or op in MOVES
        masked_result = ct.has_masked_zeros
        ct = ct.before_rule_by_elements(value, self.wild) if by_elements else ct.before_rule_that_mixes(op)
        for position, (operand, rule) in enumerate(zip(operands, rules, strict=False)):   # index operands of gathers have no rule
            if operand not in self.active or isinstance(rule, NotDifferentiable):
                continue
            if isinstance(rule, Into):
                self._into(value, operand, rule, ct)
                continue
            found = (cotangent_under(value, ct.value) if op is ops.sqrt else None) or rule(ct.value, value, *operands, **value.attrs)
            if found is None:
                self.stopped.append((value, position))
                continue
            reduces_wild = masked_result and op.kind == "reduction" and not op.keeps_zero and operand in self.wild
            if reduces_wild:
                found = under_zeros(ct.value, found, value.attrs["axes"])
            guard = rule(ct.guard, value, *operands, **value.attrs) if op in MOVES and ct.guard is not None else ct.guard
            masked = reduces_wild or (position == 0 and overwrites(value, self.inside))
            self._add_of_rule(value, operand, ct.of_operand(value, found, guard), masked)

    def _add_of_rule(self, value: Value, operand: Value, found: Cotangent, masked: bool = False) -> None:
        """Accumulate what a rule gave an operand: a multiple of a cotangent that may have masked zeros has these."""
        masked |= value.op in LINEAR_IN_BOTH and any(one in self.factors and one is not operand for one in value.operands)
        self.add(operand, found._replace(masked=True) if masked else found)

    def _into(self, value: Value, operand: Value, rule: Into, ct: Cotangent) -> None:
        present = self.cotangents.get(operand)
        accumulator = constant(0.0, operand.type) if present is None else present.settled()
        found = rule.rule(accumulator, ct.value, value, *value.operands, **value.attrs)
        picks = self.has_missing and not self.inside and value.op in PICKS and is_made(operand)
        masked = (ct.has_masked_zeros or picks) and (present is None or present.has_masked_zeros)
        lines = ct.lines | (left_lines(value) if picks else 0) | (0 if present is None else present.lines)
        self.cotangents[operand] = Cotangent(found, masked=masked, lines=lines)

    def _lines_of_product(self, product: Value, ct: Cotangent) -> int:
        """The lines of a product's cotangent that may be zeros which stand for nan: ROWS, COLUMNS.

        With what masks zeros that come from outside of a loop nobody knows: not every element of a vector is asked there.
        """
        if not ct.has_masked_zeros:
            return 0
        rows, columns = product.shape[-2:]
        is_vector = self.has_missing and not self.inside and 1 in (rows, columns)
        return ct.lines | (ROWS if columns == 1 else COLUMNS) if is_vector else ct.lines

    def _item_cotangents(self, value: Value) -> tuple[Value | None, ...]:
        items = self.items.pop(value)
        return tuple(items[k].settled() if k in items else None for k in range(len(value.type.items)))

    def _joint(self, value: Value, ct: Any, masked: bool) -> None:
        """A rule for all operands, of one settled cotangent or those of all results; masked: these have masked zeros."""
        rule = _joint_rule(value)
        if rule.into:
            self._joint_into(value, rule, ct, masked)
            return
        for operand, found in self._found(value, rule, ct):
            self.add(operand, Cotangent(found, masked=masked and value.op.keeps_zero))

    def _joint_by_elements(self, value: Value, ct: Cotangent) -> None:
        ct = ct.before_rule_by_elements(value, self.wild)
        for operand, found in self._found(value, _joint_rule(value), ct.value):
            self._add_of_rule(value, operand, ct.of_operand(value, found, ct.guard))

    def _found(self, value: Value, vjp: Joint, ct: Any) -> Iterator[tuple[Value, Value]]:
        """The operands that a joint rule gives a cotangent, with these."""
        cotangents = vjp.rule(ct, value, value.operands, self._needs(value), **value.attrs)
        for position, (operand, found) in enumerate(zip(value.operands, cotangents, strict=True)):
            if operand not in self.active:
                continue
            if found is None:
                self.stopped.append((value, position))
            else:
                yield operand, found

    def _needs(self, value: Value) -> tuple[bool, ...]:
        return tuple([operand in self.active for operand in value.operands])

    def _joint_into(self, value: Value, vjp: Joint, ct: Any, masked: bool) -> None:
        """A rule that adds to the cotangents of its operands; one that is an operand twice gets what is added as a value of its own."""
        operands = value.operands
        present = [self.cotangents[operand].settled() if operand in self.cotangents and operands.index(operand) == k else None
                   for k, operand in enumerate(operands)]
        found = vjp.rule(present, ct, value, operands, self._needs(value), **value.attrs)
        for k, (operand, total) in enumerate(zip(operands, found, strict=True)):
            if operand not in self.active or total is None:
                continue
            zeros = masked or k in value.attrs["rule"].masked
            before = self.cotangents.get(operand)
            if operands.index(operand) == k:
                self.cotangents[operand] = Cotangent(total, masked=zeros and (before is None or before.has_masked_zeros))
            else:
                self.add(operand, Cotangent(total, masked=zeros))


def _joint_rule(value: Value) -> Joint:
    vjp = value.op.vjp
    if not isinstance(vjp, Joint):
        raise GradientError(at(value.source, f"{value.op.name} has several results but no joint derivative rule"))
    if isinstance(vjp.rule, Absent):
        raise UnsupportedError(at(value.source, vjp.rule.reason))
    return vjp


class _PartsOfZeros:
    """Which cotangents are arrays of zeros to whose parts something was added; asked for again and again along one chain of them."""

    def __init__(self) -> None:
        self.known: dict[Value, bool] = {}

    def into(self, base: Value, parts: Value) -> Value | None:
        """What was added to parts of an array of zeros, added to `base` instead; None where it is something else."""
        if not self.holds(parts):
            return None
        added: list[Value] = []
        while parts.op is not ops.full:
            added.append(parts)
            parts = parts.operands[0]
        for value in reversed(added):
            add = ops.slice_add if value.op is ops.slice_update else value.op       # zeros with a part are zeros to which it is added
            base = add(base, *value.operands[1:], **value.attrs)
        return base

    def holds(self, value: Value) -> bool:
        """Whether a value is one."""
        chain: list[Value] = []
        while value.op in _ADDED_PARTS and value not in self.known:
            chain.append(value)
            before = value.operands[0]
            if before.op is ops.full or value.op is ops.slice_update:
                self.known[value] = before.op is ops.full and before.attrs["value"] == 0
                break
            value = before
        found = self.known.get(value, False)
        self.known.update(dict.fromkeys(chain, found))
        return found


_ADDED_PARTS = frozenset((ops.slice_add, ops.scatter_add, ops.slice_update))
