"""Loops and choices natively: a function that calls the functions of their bodies (`calls.body_text`).

    i32 loop(record, memory, state 0.., other 0.., invariant 0.., index 0..)

`state k` holds what operand k is at the start and result k at the end; `memory` is the arena of the bodies.  The body of a loop
writes the next state over the last one (its plan says that it may), or, where it reads the last one until the end, into `other k`,
and the two change places.  How often a loop runs is data here, so code and compile time do not depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bwcompiler.errors import InternalError
from bwcompiler.ir.extent import Affine, Extent, Index, add_extents, lower, scale_extent, upper
from bwcompiler.ir.op import Value
from bwcompiler.lowering.calls import extent_register
from bwcompiler.lowering.polls import DECLARE_POLL, POLL, POLL_WORK
from bwcompiler.lowering.steps import LoweredBody

_DECLARE_COPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"


class BodyFunction(NamedTuple):
    """A body as a function; work: its operations."""

    name: str
    work: int


class RegionText(NamedTuple):
    """The function, what it needs declared, how many operands its results start as, and its operations, looks for signals apart."""

    text: str
    declares: Sequence[str]
    carried: int
    work: int


def region_text(name: str, value: Value, bodies: Sequence[LoweredBody], functions: Sequence[BodyFunction],
                indices: Sequence[Index]) -> RegionText:
    """The function of a loop, while loop or choice inside of loops with these indices."""
    match value.op.name:
        case "loop":
            return _counted(name, value, bodies[0], functions[0], indices)
        case "while_loop":
            return _while(name, value, bodies, functions, indices)
        case "cond":
            return _choice(name, value, functions, indices)
    raise InternalError(f"{value.op.name} is no loop and no choice")


@dataclass
class _Function:
    """The function being written: its parameters in groups, and its lines."""

    name: str
    indices: Sequence[Index]
    states: int = 0
    others: Sequence[int] = ()               # the states that have another place, in order
    operands: int = 0
    lines: list[str] = field(default_factory=list)
    declares: dict[str, None] = field(default_factory=dict)
    count: int = 0

    def put(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}")
        return f"%v{self.count}"

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def extent(self, extent: Extent) -> str:
        return extent_register(extent, self.put, lambda index: f"%x{self.indices.index(index)}")

    def state(self, number: int) -> str:
        """The register of the last state inside of the loop."""
        return f"%now{number}" if number in self.others else f"%c{number}"

    def next_state(self, number: int) -> str:
        return f"%next{number}" if number in self.others else f"%c{number}"

    def call(self, function: BodyFunction, slots: Sequence[str], own: Sequence[str] = ()) -> None:
        """Call a body, and leave with its status if that is not 0."""
        arguments = ["ptr %record", "ptr %memory", *[f"ptr {slot}" for slot in slots],
                     *[f"i64 %x{number}" for number in range(len(self.indices))], *[f"i64 {index}" for index in own]]
        self.leave_if_bad(f"call i32 @{function.name}({', '.join(arguments)})")

    def leave_if_bad(self, call: str) -> None:
        status = self.put(call)
        bad = self.put(f"icmp ne i32 {status}, 0")
        self.lines += [f"  br i1 {bad}, label %leave{self.count}, label %on{self.count}", f"leave{self.count}:", f"  ret i32 {status}",
                       f"on{self.count}:"]

    def poll(self, number: str, every: int) -> None:
        """A look for signals in every so many iterations."""
        self.declares[DECLARE_POLL] = None
        if every <= 1:
            self.leave_if_bad(f"call i32 @{POLL}()")
            return
        due = self.put(f"icmp eq i64 {self.put(f'urem i64 {number}, {every}')}, {every - 1}")
        self.lines += [f"  br i1 {due}, label %poll, label %polled", "poll:"]
        self.leave_if_bad(f"call i32 @{POLL}()")
        self.lines += ["  br label %polled", "polled:"]

    def begin_iterations(self) -> list[str]:
        """The registers that change from one iteration to the next: number, and the places of the states."""
        self.lines += ["  br label %head", "head:", "  %n = phi i64 [ 0, %entry ], [ %n.next, %latch ]"]
        self.lines += [f"  %now{k} = phi ptr [ %c{k}, %entry ], [ %next{k}, %latch ]" for k in self.others]
        self.lines += [f"  %next{k} = phi ptr [ %o{k}, %entry ], [ %now{k}, %latch ]" for k in self.others]
        return [*[self.state(k) for k in range(self.states)], *[f"%v.{k}" for k in range(self.operands)]]

    def next_iteration(self) -> None:
        self.lines += ["  br label %latch", "latch:", "  %n.next = add nuw nsw i64 %n, 1", "  br label %head", "done:"]

    def settle(self, value: Value) -> None:
        """Copy the states that ended in their other place."""
        for k in self.others:
            self.declares[_DECLARE_COPY] = None
            size = value.operands[k].type.nbytes
            self.lines += [f"  %at{k} = icmp eq ptr %now{k}, %c{k}", f"  br i1 %at{k}, label %settled{k}, label %settle{k}", f"settle{k}:",
                           f"  call void @llvm.memcpy.p0.p0.i64(ptr %c{k}, ptr %now{k}, i64 {size}, i1 false)",
                           f"  br label %settled{k}", f"settled{k}:"]

    def text(self, work: int) -> RegionText:
        parameters = ["ptr %record", "ptr %memory", *[f"ptr %c{k}" for k in range(self.states)], *[f"ptr %o{k}" for k in self.others],
                      *[f"ptr %v.{k}" for k in range(self.operands)], *[f"i64 %x{k}" for k in range(len(self.indices))]]
        head = f"define internal i32 @{self.name}({', '.join(parameters)}) #1 {{\nentry:\n"
        lines = [*self.lines, "  ret i32 0", "}", ""]
        return RegionText(head + "\n".join(lines), list(self.declares), self.states, work)


def _loop_function(name: str, value: Value, body: LoweredBody, indices: Sequence[Index]) -> _Function:
    carried = value.attrs["carried"]
    return _Function(name, indices, carried, body.swapped, len(value.operands) - carried)


def _counted(name: str, value: Value, body: LoweredBody, function: BodyFunction, indices: Sequence[Index]) -> RegionText:
    """for index in lo, lo + |step|, ... up to hi, or from the last to the first."""
    lo, hi, step = value.attrs["lo"], value.attrs["hi"], value.attrs["step"]
    made = _loop_function(name, value, body, indices)
    trips, most = _trips(made, lo, hi, abs(step))
    first = made.extent(lo)
    if step < 0:
        last = made.put(f"mul nsw i64 {made.put(f'sub nsw i64 {trips}, 1')}, {-step}")
        first = made.put(f"add nsw i64 {first}, {last}")
    slots = made.begin_iterations()
    more = made.put(f"icmp slt i64 %n, {trips}")
    made.lines += [f"  br i1 {more}, label %body, label %done", "body:"]
    index = made.put(f"add nsw i64 {first}, {made.put(f'mul nsw i64 %n, {step}')}")
    made.call(function, [*slots, *[made.next_state(k) for k in range(made.states)]], [index])
    work = max(1, function.work)
    polls = most * work > POLL_WORK
    if polls:
        made.poll("%n", POLL_WORK // work)
    made.next_iteration()
    made.settle(value)
    return made.text(0 if polls else most * work)


def _trips(made: _Function, lo: Extent, hi: Extent, step: int) -> tuple[str, int]:
    """How often the loop runs: the register or literal, and the most that it may be."""
    span = add_extents(add_extents(hi, scale_extent(lo, -1)), 1)
    most = max(0, -(-upper(span) // step))
    if not isinstance(span, Affine):
        return str(most), most
    register = made.extent(span)
    if lower(span) < 0:
        empty = made.put(f"icmp slt i64 {register}, 0")
        register = made.put(f"select i1 {empty}, i64 0, i64 {register}")
    if step != 1:
        register = made.put(f"udiv i64 {made.put(f'add nsw i64 {register}, {step - 1}')}, {step}")
    return register, most


def _while(name: str, value: Value, bodies: Sequence[LoweredBody], functions: Sequence[BodyFunction],
           indices: Sequence[Index]) -> RegionText:
    """while condition(...): body(...); the condition writes its answer behind the arena of the two."""
    made = _loop_function(name, value, bodies[1], indices)
    slots = made.begin_iterations()
    made.lines.append(f"  %answer = getelementptr i8, ptr %memory, i64 {condition_offset(bodies)}")
    made.call(functions[0], [*slots, "%answer"])
    made.lines += ["  %flag = load i8, ptr %answer", "  %more = icmp ne i8 %flag, 0", "  br i1 %more, label %body, label %done", "body:"]
    made.call(functions[1], [*slots, *[made.next_state(k) for k in range(made.states)]])
    made.poll("%n", POLL_WORK // max(1, functions[0].work + functions[1].work))
    made.next_iteration()
    made.settle(value)
    return made.text(0)


def condition_offset(bodies: Sequence[LoweredBody]) -> int:
    """Where behind the bodies' arena the answer of a condition is."""
    return max([body.plan.arena_bytes for body in bodies])


def _choice(name: str, value: Value, functions: Sequence[BodyFunction], indices: Sequence[Index]) -> RegionText:
    """then(...) or else(...)."""
    results = len(value.type.items)
    made = _Function(name, indices, results, (), len(value.operands))
    made.lines += ["  %flag = load i8, ptr %v.0", "  %holds = icmp ne i8 %flag, 0", "  br i1 %holds, label %then, label %else"]
    slots = [*[f"%v.{k}" for k in range(1, len(value.operands))], *[f"%c{k}" for k in range(results)]]
    for label, function in zip(("then", "else"), functions, strict=True):
        made.label(label)
        made.call(function, slots)
        made.lines.append("  br label %end")
    made.label("end")
    return made.text(max(function.work for function in functions))._replace(carried=0)
