"""A program in words, for people who want to know why it does what it does: `explain_program`.

Every section shows the decisions of a stage, with the user's lines, and the reasons, in the words of that stage: the
rules of derivatives (`gradient_reasons`), of fusion (`fusion/rules.py`), of updates (`find_updates`) and of memory
(`plan_memory`).  Nothing is guessed from the result.
"""

from __future__ import annotations

import itertools
import linecache
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bwcompiler import ops
from bwcompiler.compiler.lowered import Lowered
from bwcompiler.compiler.program_like import ProgramLike
from bwcompiler.errors import bytes_text
from bwcompiler.frontend.tracing.boundary.arguments import unwrapped
from bwcompiler.inspect.gradient_reasons import Flow, Stop, Ways, derivative_flow, way_to, ways_from
from bwcompiler.ir.access import is_virtual, root
from bwcompiler.ir.contracts.fusion import Call, FusedProgram, FusionGroup, Refusal
from bwcompiler.ir.op import Value
from bwcompiler.ir.products import is_written_out
from bwcompiler.ir.routine import Native
from bwcompiler.ir.source import Source
from bwcompiler.lowering.libraries import factorization_calls
from bwcompiler.lowering.libraries.matrix_products import is_called, product_method
from bwcompiler.lowering.steps import LoweredBody
from bwcompiler.ops.calls.callback import callback
from bwcompiler.passes.derivatives import partition
from bwcompiler.passes.fusion import rules as fusion_rules
from bwcompiler.passes.fusion.fuse import fuse
from bwcompiler.passes.memory import find_updates, plan_memory

SHOWN = 40                     # entries of a section; unrolled loops have thousands
STOPS_SHOWN = 3                # paths of one argument
NAMES_SHOWN = 6                # names in one line
ITEMS_SHOWN = 4                # lines of the numbers of one list of which the same is to be said

Names = Mapping[Value, str]


def explain_program(program: ProgramLike) -> str:
    """Python's loops, gradients, residuals, loops and calls, updates and copies, in words."""
    lowered = program.lowered()
    fused = fuse(lowered.simplified, reasons=True)
    names = program.lowered_names()
    sections = [[*_traced(program), *_gradients(program)], _residuals(program), _Steps(lowered, fused, names).lines(),
                _updates(program, fused, names)]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


# ----- lines of the user, and numbers
def _place(value: Value, width: int = 0) -> str:
    """`loss.py:5  hidden = np.tanh(x @ w)`; `argument x`; a description for values without a line."""
    if value.op.kind == "input":
        return f"argument {value.name}"
    if value.source is None:
        return f"(constant {value.attrs['value']})" if value.op is ops.full else f"({value.op.name})"
    code = linecache.getline(value.source.file, value.source.line).strip()
    return f"{value.source.short:<{width}}  {code}".rstrip()


def _width(values: Iterable[Value]) -> int:
    """The column at which code starts, after the `file:line` parts."""
    return max((len(value.source.short) for value in values if value.source is not None), default=0)


def _by_line(values: Iterable[Value]) -> dict[str, list[Value]]:
    """The values of each line of the user, lines in the order of their first values."""
    values = list(values)
    width = _width(values)
    found: dict[str, list[Value]] = {}
    for value in values:
        found.setdefault(_place(value, width), []).append(value)
    return found


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun if count == 1 else noun + ('es' if noun.endswith('ch') else 's')}"


def _listed(words: Sequence[str]) -> str:
    """`a`; `a and b`; `a, b and c`; `a, b, c and 7 more`."""
    shown = [*words[:NAMES_SHOWN], f"{len(words) - NAMES_SHOWN} more"] if len(words) > NAMES_SHOWN + 1 else words
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _shortened(lines: list[str], stage: str) -> list[str]:
    left = len(lines) - SHOWN
    return [*lines[:SHOWN], f"  ... and {left} more; as_text({stage!r}) shows all"] if left > 0 else lines


class _Told(NamedTuple):
    """A line about an argument, and its end in a line about it and others of the same list."""

    before: str
    name: str
    one: str
    many: str

    @property
    def family(self) -> tuple[str, str, str]:
        return self.before, re.sub(r"\.\d+", ".*", self.name), self.many


def _together(told: Iterable[_Told]) -> list[str]:
    """Lines about arguments: one of the numbers of a list, if the same is said of all of them."""
    lines: list[str] = []
    for (before, family, many), group in itertools.groupby(told, lambda one: one.family):
        members = list(group)
        if len(members) > ITEMS_SHOWN:
            lines.append(f"{before}{members[0].name} and {len(members) - 1} more of {family}{many}")
        else:
            lines += [f"{one.before}{one.name}{one.one}" for one in members]
    return lines


# ----- the trace
def _traced(program: ProgramLike) -> list[str]:
    """How Python's loops were compiled, and which arguments are compiled in."""
    traced = program.traced
    lines = [f"the loop in {Source(file, line).short} is unrolled: {reason}" for (file, line, _), reason in traced.notes]
    lines += [f"the loop in {Source(file, line).short} is {text}" for (file, line, _), text in traced.loops]
    if traced.unrolled_for is not None:
        lines.append(f"all loops are unrolled: {traced.unrolled_for}")
    names, told = traced.arguments.names(), []
    for position in sorted(traced.arguments.static):
        where = traced.demanded.get(position)
        one, many = [f": {whose} needed while tracing ({where.short})" if where is not None else ""
                     for whose in ("its value is", "their values are")]
        if isinstance(traced.arguments.leaves[position], np.ndarray):
            end = " are compiled in: the program depends on them; other contents compile again"
            told.append(_Told("the contents of ", names[position], end, end))
            continue
        value = unwrapped(traced.arguments.leaves[position])
        told.append(_Told("", names[position], f" = {value!r} is compiled in{one}", f" are compiled in{many}"))
    return lines + _together(told)


# ----- gradients
def _gradients(program: ProgramLike) -> list[str]:
    """Per argument: computed, zero or None, and why."""
    joint, traced = program.halves().joint, program.traced
    stopped = {(joint.origins.get(value, value), position) for value, position in joint.stopped}
    found = dict(zip(program.default_wrt, program.lowered().simplified.outputs[len(traced.outputs):], strict=True))
    flow = derivative_flow(program.graph, stopped)
    lines: list[str] = []
    without: list[_Told] = []
    passed: dict[Value, tuple[Stop, list[str]]] = {}           # where some paths stop, for arguments that have a gradient
    for number, (argument, name) in enumerate(zip(traced.argument_types, traced.input_names, strict=True)):
        if not argument.type.dtype.is_differentiable:
            dtype = argument.type.dtype.numpy
            without.append(_Told("gradient of ", name, f" is None: its dtype is {dtype}", f" is None: their dtype is {dtype}"))
            continue
        if number not in found:
            without.append(_Told("gradient of ", name, " is None: it is not in wrt", " is None: they are not in wrt"))
            continue
        lines += _together(without)
        without.clear()
        ways = ways_from(flow, program.graph.inputs[number])
        lines += _differentiated(name, found[number], ways, flow)
        for stop in ways.stops if ways.flows else ():
            passed.setdefault(stop.value, (stop, []))[1].append(name)
    lines += _together(without)
    if passed:
        lines.append("no derivative flows back through")
        width = _width(passed)
        rows = [f"  {_place(value, width)}  (to {_listed(arguments)})\n    {stop.reason}" for value, (stop, arguments) in passed.items()]
        lines += _shortened(list(dict.fromkeys(rows)), "forward")          # an unrolled loop repeats a line for each iteration
    return lines


def _differentiated(name: str, gradient: Value, ways: Ways, flow: Flow) -> list[str]:
    if not ways.used:
        return [f"gradient of {name} is zero: no returned value depends on it"]
    if not ways.flows:
        return [f"gradient of {name} is zero: on every path from it to a returned value, the derivative stops", *_stops(ways, flow)]
    if gradient.op is ops.full and gradient.attrs["value"] == 0:
        return [f"gradient of {name} is zero: the derivatives on the path from it to the returned values multiply to the constant 0"]
    return [f"gradient of {name} is computed: {gradient.type}, {bytes_text(gradient.type.nbytes)}"]


def _stops(ways: Ways, flow: Flow) -> list[str]:
    lines: list[str] = []
    for stop in ways.stops[:STOPS_SHOWN]:
        lines += [f"  {place}" for place in _by_line(way_to(flow, ways.argument, stop))]
        lines.append(f"    {stop.reason}")
    left = len(ways.stops) - STOPS_SHOWN
    return [*lines, f"  ... and {_counted(left, 'other path')}"] if left > 0 else lines


# ----- residuals
def _residuals(program: ProgramLike) -> list[str]:
    """What `vjp` saves for its pullback, and what the pullback recomputes."""
    names, found = program.forward_names(), program.halves().partition
    again = [value for value in found.recomputed if value in names and not is_virtual(value)]
    if not found.residuals and not again:
        return []
    total = sum(value.type.nbytes for value in found.residuals)
    lines = [f"saved by vjp for the pullback: {_counted(len(found.residuals), 'array')}, {bytes_text(total)}"]
    readers = found.adjoint.users()
    rows = []
    for value, held in zip(found.residuals, found.adjoint.inputs, strict=False):
        name = names.get(value, f"%{value.op.name}")
        rows.append(f"  {bytes_text(value.type.nbytes):>9}  {name}: {value.type}  {_place(value)}{_needed_by(readers[held], names)}")
        if found.why[value] != "argument":
            rows[-1] += f"\n             {partition.RULES[found.why[value]]}"
    lines += _shortened(rows, "adjoint")
    if again:
        work = _counted(sum([value.op.kind != "layout" for value in again]), "cheap operation")
        if not all(value.op.cheap for value in again):
            expensive = sum([not value.op.cheap for value in again])
            why = "which costs less than saving them" if program.memory_limit is None else "to stay within memory_limit"
            work = f"{_counted(len(again), 'operation')}, {expensive} of them expensive, {why}"
        size = bytes_text(sum(value.type.nbytes for value in again))
        lines.append(f"recomputed by the pullback instead of saved: {size}, {work}")
        lines += _shortened([f"  {place}  [{_listed([names[value] for value in values])}]" for place, values in _by_line(again).items()],
                            "adjoint")
    return lines


def _needed_by(readers: Iterable[Value], names: Names) -> str:
    """The forward values whose derivatives read a residual."""
    forwards = dict.fromkeys(reader.forward for reader in readers if reader.forward is not None)
    found = [names[forward] for forward in forwards if forward in names]
    return f"  (for the derivative of {_listed(found)})" if found else ""


# ----- loops and calls
class _Steps:
    """The steps in order: loops with the values fused into them, library calls, callbacks."""

    def __init__(self, lowered: Lowered, fused: FusedProgram, names: Names) -> None:
        self.lowered = lowered
        self.fused = fused
        self.names = {value: text if text.startswith("%") else f"{text} in an array" for value, text in names.items()}
        self.callbacks = {callback.value for callback in lowered.program.callbacks}
        self.kernels = {position for step in lowered.steps if step.kernel is not None for position in step.positions}
        self.sweeps = {position: step.position for step in lowered.steps for position in step.joined}
        self.bodies = {step.value: step.bodies for step in lowered.steps if step.value is not None and step.bodies}
        self.refusals: dict[Value, list[Refusal]] = {}
        for refusal in fused.refusals:
            self.refusals.setdefault(refusal.value, []).append(refusal)

    def lines(self) -> list[str]:
        shown = [step for step in self.fused.steps if isinstance(step, Call) or step.position in self.kernels]
        kinds = Counter([_step_kind(step) for step in shown])
        parts = [_counted(kinds[kind], kind) for kind in _KINDS if kinds[kind]] or [_counted(0, "loop")]
        lines = [f"value and gradients: {_counted(len(self.lowered.simplified.body), 'operation')} in {_listed(parts)} "
                 f"({_counted(self.lowered.program.kernels, 'distinct kernel')}), arena {bytes_text(self.lowered.plan.arena_bytes)}"]
        for step in shown[:SHOWN]:
            lines += self._loop(step) if isinstance(step, FusionGroup) else self._call(step)
        left = len(shown) - SHOWN
        return [*lines, f"... and {left} more; as_text('fused') shows all"] if left > 0 else lines

    def _loop(self, group: FusionGroup) -> list[str]:
        lines = [f"k{group.position}  {_extents_text(group)}{self._together(group, 'iterations')}"]
        for backward in (False, True):
            values = [member.value for member in group.members if (member.value.forward is not None) is backward]
            for place, found in _by_line(values).items():
                lines.append(f"  {place}  [{'backward: ' if backward else ''}{_listed([self.names[value] for value in found])}]")
        return lines + self._apart(group)

    def _apart(self, group: FusionGroup) -> list[str]:
        """Why the group's first member is in no earlier group, and why later members are not in the groups that they read from."""
        found: dict[tuple[str, str], list[int]] = {}           # (value, reason) -> loops and calls
        seen: set[int] = set()
        computed = self.fused.step_of
        own = [member for member in group.members if (member.is_number and group.extents) or computed.get(member.value, group) is group]
        for number, member in enumerate(own):
            name = self.names[member.value]
            for refusal in self.refusals.get(member.value, ()):
                if refusal.group in seen or refusal.group not in self.kernels:
                    continue
                if number and (refusal.rule == "order" or not refusal.about):
                    continue
                seen.add(refusal.group)
                about = _listed([self.names[value] for value in refusal.about] or [name])
                found.setdefault((name, fusion_rules.RULES[refusal.rule].format(about)), []).append(refusal.group)
            for base in _bases(member.value):
                step = self.fused.step_of.get(base)
                if isinstance(step, Call) and step.position not in seen:
                    seen.add(step.position)
                    is_call = _step_kind(step) == "call"
                    alone = "a call computes only one value" if is_call else f"a {_step_kind(step)} is a step of its own"
                    found.setdefault((name, alone), []).append(step.position)
        return [f"  {name} is not in {_listed([f'k{position}' for position in sorted(others)])}: {reason}"
                for (name, reason), others in found.items()]

    def _together(self, step: FusionGroup | Call, what: str) -> str:
        """A note if the step is part of a sweep."""
        sweep = self.sweeps.get(step.position)
        return "" if sweep is None else f"; in one sweep with k{sweep}, a few {what} at a time"

    def _call(self, call: Call) -> list[str]:
        value = call.value
        operands = ", ".join(f"{self.names.get(operand, operand.op.name)}: {operand.type}" for operand in value.operands)
        backward = "backward: " if value.forward is not None else ""
        kind = f"{self._kind(call)}{self._together(call, 'rows')}"
        return [f"k{call.position}  {kind}", f"  {_place(value)}  [{backward}{self.names[value]} = {value.op.name} {operands}]"]

    def _kind(self, call: Call) -> str:
        value = call.value
        if value in self.callbacks:
            if value.op is callback:
                return f"callback: {value.attrs['host']!r} runs in Python and takes the GIL"
            return f"callback into NumPy: {value.op.name} runs in Python and takes the GIL"
        if value.op in ops.PRODUCTS and (is_called(value) or is_written_out(value)):
            return f"{product_method(value)}, {2 * value.type.size * value.operands[0].shape[-1]:,} floating-point operations"
        if call.position in self.kernels:
            why = _NOT_FUSED.get(value.op.kind)
            return f"loop of its own for {value.op.name}" + (f": {why}" if why else "")
        if value.op in (ops.normalize_index, ops.check_range):
            return "check that indices are in range"
        if value.op.kind == "region":
            return _region_text(value, self.bodies[value])
        routine = value.op.library
        if factorization_calls.is_written_out(value):
            return f"{value.op.name} of small matrices, inlined"
        real_only = isinstance(routine, Native) and value.op is not ops.triangular_solve
        known = routine is not None and not (real_only and value.dtype.is_complex)
        return f"library call: {value.op.name}" + (f" by {routine.text(value.attrs)}" if routine is not None and known else "")


_NOT_FUSED = {"scan": "each element depends on the one before", "push": "it writes to elements that its operands choose"}


_KINDS = ("loop", "native loop", "native while loop", "native branch", "call")


def _step_kind(step: FusionGroup | Call) -> str:
    if isinstance(step, FusionGroup):
        return "loop"
    return _region_kind(step.value) if step.value.op.kind == "region" else "call"


def _region_kind(value: Value) -> str:
    return {ops.while_loop: "native while loop", ops.cond: "native branch"}.get(value.op, "native loop")


def _region_text(value: Value, bodies: Sequence[LoweredBody]) -> str:
    """`native loop, t in 0..49: 2 kernels and 1 call in the body`."""
    what = _region_kind(value)
    if value.op is ops.loop:
        lo, hi, step = value.attrs["lo"], value.attrs["hi"], value.attrs["step"]
        what += f", {value.attrs['body'].index} in {lo}..{hi}" + (f" by {step}" if step != 1 else "")
    counts = []
    for region, body in zip(value.op.regions, bodies, strict=True):
        kernels = len([step for step in body.steps if step.kernel is not None])
        counts.append(f"{_listed([_counted(kernels, 'kernel'), _counted(len(body.steps) - kernels, 'call')])} in the "
                      f"{region.replace('_branch', '').replace('else', 'other')}")
    return f"{what}: {_listed(counts)}"


def _extents_text(group: FusionGroup) -> str:
    """`loop over 32 x 4`; `loop over 32, with passes over 4 inside`."""
    inner = group.inner or frozenset()
    outer = " x ".join([str(extent) for axis, extent in enumerate(group.extents) if axis not in inner])
    passes = " x ".join([str(group.extents[axis]) for axis in sorted(inner)])
    if outer and passes:
        return f"loop over {outer}, with passes over {passes} inside"
    return f"loop over {outer}" if outer else f"passes over {passes}" if passes else "single numbers"


def _bases(value: Value) -> list[Value]:
    """The values that have to be computed before value: its operands, seen through layout ops."""
    found: list[Value] = []
    pending = list(value.operands)
    while pending:
        operand = root(pending.pop(0))
        if is_virtual(operand):
            pending += operand.operands
        else:
            found.append(operand)
    return found


# ----- updates and copies
def _updates(program: ProgramLike, fused: FusedProgram, names: Names) -> list[str]:
    """Which assignments to parts of arrays are done in place, and which arrays are copied."""
    lowered = program.lowered()
    rules = find_updates.why_not_in_place(lowered.simplified)
    found: Counter[str] = Counter()
    for step in fused.steps:
        if isinstance(step, Call):
            found.update([f"in place  {_update_place(step.value)}"] if step.value in lowered.plan.in_place else [])
            continue
        for member in step.members:
            if member.update:
                found[f"in place  {_update_place(member.value)}"] += 1
            elif member.value.op in ops.UPDATES:
                rule = rules.get(member.value, "overlap")
                found[f"as a new array  {_update_place(member.value)}: {find_updates.RULES[rule]}"] += 1
    found.update(_copies(program, fused, names))
    lines = [f"  {text}" + (f"  ({count} times)" if count > 1 else "") for text, count in found.items()]
    return ["updates of arrays, and copies:", *_shortened(lines, "plan")] if lines else []


def _update_place(value: Value) -> str:
    return f"{_place(value)}  [{'backward: ' if value.forward is not None else ''}{value.op.name}]"


def _copies(program: ProgramLike, fused: FusedProgram, names: Names) -> list[str]:
    """Arrays that are copied before updates, and results that are copies of other values."""
    lowered = program.lowered()
    plan = lowered.plan
    lines: list[str] = []
    for result, copied in plan.copied.items():
        words = plan_memory.RULES[copied.rule].format(names[copied.operand])
        reader = "" if copied.step is None else _reader(lowered, fused, copied.step, copied.operand)
        lines.append(f"copied first, {bytes_text(result.type.nbytes)}  {_update_place(result)}: {words}{reader}")
    def result_name(number: int) -> str:
        traced = program.traced
        if number < len(traced.outputs):
            return f"result {number}"
        return f"the gradient of {traced.input_names[program.default_wrt[number - len(traced.outputs)]]}"

    graph = lowered.simplified
    captured = graph.inputs[len(graph.inputs) - graph.captured:]
    for value, number in plan.copies:
        kind, other = plan.locations[value]
        argument = ("an array from outside of the function" if value in captured else
                    f"the argument {value.name}" if value in program.graph.inputs else "the seed")
        same = argument if kind == "argument" else f"the same as {result_name(other)}"
        lines.append(f"copied, {bytes_text(value.type.nbytes)}  {result_name(number)} is {same}")
    return lines


def _reader(lowered: Lowered, fused: FusedProgram, number: int, array: Value) -> str:
    """The user's line at which a step reads an array."""
    step = lowered.steps[number]
    for value in lowered.simplified.body:
        placed = fused.step_of.get(value)
        here = placed is not None and (value is step.value or placed.position in step.positions)
        if here and array in (*_bases(value), *map(root, value.operands)):
            return f", at {_place(value)}"
    return ""
