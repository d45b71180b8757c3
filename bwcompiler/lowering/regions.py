"""Native loops and branches: functions that call the functions of their bodies (`calls.body_text`).

    i32 loop(record, memory, state 0.., other 0.., invariant 0.., index 0..)

`state k` holds operand k at the start and result k at the end; `memory` is the arena of the bodies.  The body of a loop
writes the next state over the old one if its memory plan allows that; otherwise into the second buffer `other k`, and the two
are swapped after each iteration.  The loop is never unrolled, so code size and compile time do not depend on its trip count.

States of one element and small arenas are local memory of the function: if the body is inlined, LLVM keeps them in registers, so
that a recurrence over elements does not wait for memory between iterations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bwcompiler import ops
from bwcompiler.errors import InternalError
from bwcompiler.ir.contracts.memory import ALIGNMENT
from bwcompiler.ir.contracts.program_interface import DECLARE_POLL, POLL
from bwcompiler.ir.extent import Affine, Extent, Index, add_extents, lower, scale_extent, upper
from bwcompiler.ir.op import Value
from bwcompiler.lowering.calls import extent_register
from bwcompiler.lowering.polls import POLL_WORK
from bwcompiler.lowering.steps import LoweredBody

_DECLARE_COPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"
LOCAL_BYTES = 1024             # the largest arena that is local memory of the function


class BodyFunction(NamedTuple):
    """The function of a body; work: its number of operations."""

    name: str
    work: int


class RegionFunction(NamedTuple):
    """The function of a loop or branch: see `RegionText`."""

    name: str
    carried: int
    work: int


class RegionText(NamedTuple):
    """The function, its declarations, the number of carried operands, and its operations between polls."""

    text: str
    declares: Sequence[str]
    carried: int
    work: int


def region_text(name: str, value: Value, bodies: Sequence[LoweredBody], functions: Sequence[BodyFunction],
                indices: Sequence[Index]) -> RegionText:
    """The function of a loop, while loop or `cond` inside loops with these indices."""
    if value.op is ops.loop:
        return _counted(name, value, bodies[0], functions[0], indices)
    if value.op is ops.while_loop:
        return _while(name, value, bodies, functions, indices)
    if value.op is ops.cond:
        return _choice(name, value, bodies[0].into, functions, indices)
    raise InternalError(f"{value.op.name} is neither a loop nor a branch")


@dataclass
class _Function:
    """The function being written: its parameters in groups, and its lines.

    others: the double-buffered states, in order; held: the bytes of states in local memory; memory: the arena of the bodies.
    """

    name: str
    indices: Sequence[Index]
    states: int = 0
    others: Sequence[int] = ()
    operands: int = 0
    held: Mapping[int, int] = field(default_factory=dict)
    memory: str = "%memory"
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
        """The register of the address of the current state, inside the loop."""
        if number in self.held:
            return f"%held{number}"
        return f"%now{number}" if number in self.others else f"%c{number}"

    def next_state(self, number: int) -> str:
        if number in self.held:
            return f"%made{number}" if number in self.others else f"%held{number}"
        return f"%next{number}" if number in self.others else f"%c{number}"

    @property
    def exchanged(self) -> list[int]:
        """The states whose two buffers are swapped."""
        return [k for k in self.others if k not in self.held]

    def copy(self, target: str, source: str, size: int) -> None:
        self.declares[_DECLARE_COPY] = None
        self.lines.append(f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")

    def local(self, name: str, size: int) -> None:
        self.lines.append(f"  {name} = alloca [{size} x i8], align {ALIGNMENT}")

    def local_arena(self, bodies: Sequence[LoweredBody], size: int) -> None:
        """Make the arena of the bodies local, if it is small and no inner loop or branch is passed a part of it."""
        if 0 < size <= LOCAL_BYTES and not any(step.bodies for body in bodies for step in body.steps):
            self.memory = "%arena"
            self.local(self.memory, size)

    def call(self, function: BodyFunction, slots: Sequence[str], own: Sequence[str] = ()) -> None:
        """Call a body, and return its status if that is not 0."""
        arguments = ["ptr %record", f"ptr {self.memory}", *[f"ptr {slot}" for slot in slots],
                     *[f"i64 %x{number}" for number in range(len(self.indices))], *[f"i64 {index}" for index in own]]
        self.leave_if_bad(f"call i32 @{function.name}({', '.join(arguments)})")

    def leave_if_bad(self, call: str) -> None:
        status = self.put(call)
        bad = self.put(f"icmp ne i32 {status}, 0")
        self.lines += [f"  br i1 {bad}, label %leave{self.count}, label %on{self.count}", f"leave{self.count}:", f"  ret i32 {status}",
                       f"on{self.count}:"]

    def poll(self, number: str, every: int) -> None:
        """Poll for signals in every `every`-th iteration."""
        self.declares[DECLARE_POLL] = None
        if every <= 1:
            self.leave_if_bad(f"call i32 @{POLL}()")
            return
        due = self.put(f"icmp eq i64 {self.put(f'urem i64 {number}, {every}')}, {every - 1}")
        self.lines += [f"  br i1 {due}, label %poll, label %polled", "poll:"]
        self.leave_if_bad(f"call i32 @{POLL}()")
        self.lines += ["  br label %polled", "polled:"]

    def begin_iterations(self) -> list[str]:
        """The loop header, with phis for the iteration number and the buffers of states."""
        for k, size in self.held.items():
            self.local(f"%held{k}", size)
            if k in self.others:
                self.local(f"%made{k}", size)
            self.copy(f"%held{k}", f"%c{k}", size)
        self.lines += ["  br label %head", "head:", "  %n = phi i64 [ 0, %entry ], [ %n.next, %latch ]"]
        self.lines += [f"  %now{k} = phi ptr [ %c{k}, %entry ], [ %next{k}, %latch ]" for k in self.exchanged]
        self.lines += [f"  %next{k} = phi ptr [ %o{k}, %entry ], [ %now{k}, %latch ]" for k in self.exchanged]
        return [*[self.state(k) for k in range(self.states)], *[f"%v.{k}" for k in range(self.operands)]]

    def next_iteration(self) -> None:
        self.lines += ["  br label %latch", "latch:", "  %n.next = add nuw nsw i64 %n, 1"]
        for k in self.others:
            if k in self.held:
                self.copy(f"%held{k}", f"%made{k}", self.held[k])
        self.lines += ["  br label %head", "done:"]

    def settle(self, value: Value) -> None:
        """Copy the states that ended in the second buffer."""
        for k, size in self.held.items():
            self.copy(f"%c{k}", f"%held{k}", size)
        for k in self.exchanged:
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
    types = [operand.type for operand in value.operands[:carried]]
    held = {k: type_.nbytes for k, type_ in enumerate(types) if type_.is_fixed and type_.size == 1}
    return _Function(name, indices, carried, body.swapped, len(value.operands) - carried, held)


def _counted(name: str, value: Value, body: LoweredBody, function: BodyFunction, indices: Sequence[Index]) -> RegionText:
    """for index in lo, lo + |step|, ... up to hi (included); backwards if step is negative."""
    lo, hi, step = value.attrs["lo"], value.attrs["hi"], value.attrs["step"]
    made = _loop_function(name, value, body, indices)
    trips, most = _trips(made, lo, hi, abs(step))
    first = made.extent(lo)
    if step < 0:
        last = made.put(f"mul nsw i64 {made.put(f'sub nsw i64 {trips}, 1')}, {-step}")
        first = made.put(f"add nsw i64 {first}, {last}")
    made.local_arena([body], body.plan.arena_bytes)
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
    """The trip count of the loop, as a register or literal, and its upper bound."""
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
    """while condition(...): body(...); the condition writes its result after the arena of the two."""
    made = _loop_function(name, value, bodies[1], indices)
    made.local_arena(bodies, condition_offset(bodies) + ALIGNMENT)
    slots = made.begin_iterations()
    made.lines.append(f"  %answer = getelementptr i8, ptr {made.memory}, i64 {condition_offset(bodies)}")
    made.call(functions[0], [*slots, "%answer"])
    made.lines += ["  %flag = load i8, ptr %answer", "  %more = icmp ne i8 %flag, 0", "  br i1 %more, label %body, label %done", "body:"]
    made.call(functions[1], [*slots, *[made.next_state(k) for k in range(made.states)]])
    made.poll("%n", POLL_WORK // max(1, functions[0].work + functions[1].work))
    made.next_iteration()
    made.settle(value)
    return made.text(0)


def condition_offset(bodies: Sequence[LoweredBody]) -> int:
    """The offset of the condition's result, after the arena of the bodies."""
    return max([body.plan.arena_bytes for body in bodies])


def _choice(name: str, value: Value, into: Sequence[int | None], functions: Sequence[BodyFunction],
            indices: Sequence[Index]) -> RegionText:
    """then(...) or else(...); the arrays that they update are already in the memory of the results."""
    results = len(value.type.items)
    made = _Function(name, indices, results, (), len(value.operands))
    made.lines += ["  %flag = load i8, ptr %v.0", "  %holds = icmp ne i8 %flag, 0", "  br i1 %holds, label %then, label %else"]
    updated = {place: number for number, place in enumerate(into) if place is not None}
    given = [f"%c{updated[k]}" if k in updated else f"%v.{k + 1}" for k in range(len(value.operands) - 1)]
    slots = [*given, *[f"%c{k}" for k in range(results)]]
    for label, function in zip(("then", "else"), functions, strict=True):
        made.label(label)
        made.call(function, slots)
        made.lines.append("  br label %end")
    made.label("end")
    return made.text(max(function.work for function in functions))._replace(carried=0)
