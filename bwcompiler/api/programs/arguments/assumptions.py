"""`Assumptions`: what a trace took for granted about a call, besides the kind of its arguments."""

from __future__ import annotations

from bwcompiler.api.programs.arguments.forms import layout_of
from bwcompiler.api.programs.arguments.outside_operands import OutsideOperands
from bwcompiler.frontend.tracing.boundary.arguments import Arguments
from bwcompiler.frontend.tracing.boundary.trace_result import TraceResult
from bwcompiler.frontend.tracing.outside.repeated import OutsideRead
from bwcompiler.ir.contracts.call_signature import Layout, Read


class Assumptions:
    """The values that were compiled in from outside of the function, and the memory layouts that decided something.

    outside   the reads from outside.
    operands  those that are operands: leaves after those of the arguments.  Only their kind is taken for granted.
    layouts   the memory layout required of each leaf, operands included; None if the trace does not depend on it.
    """

    def __init__(self, traced: TraceResult, arguments: Arguments) -> None:
        self.outside = traced.outside
        self.operands = OutsideOperands(self.outside.varying, len(arguments.dynamic))
        leaves = [*arguments.dynamic_leaves, *self.operands.first]
        self.layouts: tuple[Layout, ...] = tuple([
            layout_of(leaf) if number in traced.layout_dependent else None for number, leaf in enumerate(leaves)])
        self.operands.first = []                   # they may be large, and so may their values:
        self.outside.varying = [outside._replace(read=outside.read._replace(expected=None)) for outside in self.outside.varying]

    @property
    def reads(self) -> list[Read]:
        """What each call reads from outside: to compare it, or as operands."""
        return [*[outside.read for outside in self.outside.fixed], *self.operands.reads]

    def hold_for(self, arguments: Arguments) -> bool:
        """Whether a new trace for these arguments, which are of the kind that was traced, would be the same."""
        operands = self.operands.now()
        return operands is not None and all(outside.read.holds() for outside in self.outside.fixed) and all(
            layout is None or layout == layout_of(leaf)
            for layout, leaf in zip(self.layouts, [*arguments.dynamic_leaves, *operands], strict=True))

    def changed(self) -> list[OutsideRead]:
        """The reads from outside whose values differ from those at the time of tracing."""
        return [*[outside for outside in self.outside.fixed if not outside.read.holds()],
                *[outside for outside, read in zip(self.outside.varying, self.operands.reads, strict=True) if not self.operands.fits(read)]]
