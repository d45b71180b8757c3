"""`Variants` and `Assumptions`: which trace of a function holds for a call."""

from dataclasses import dataclass

import numpy as np

from bwcompiler.api.programs.arguments.assumptions import Assumptions
from bwcompiler.api.programs.variants import VARIANTS, Retrace, Variants
from bwcompiler.frontend.tracing.boundary.arguments import Arguments, take_apart
from bwcompiler.frontend.tracing.boundary.trace_result import TraceResult
from bwcompiler.frontend.tracing.trace import TraceOptions, trace_arguments

X = np.ones((2, 3))
FACTOR = 2.0


@dataclass
class Traced:
    traced: TraceResult
    assumptions: Assumptions


def call(fun, variants, *args):
    """The variant for a call, and what it was traced with; None if there was one already."""
    retraced: list[Retrace | None] = [None]
    arguments = take_apart(fun, args)
    variants.make_static(arguments)

    def make(retrace: Retrace) -> Traced:
        retraced[:] = [retrace]
        traced = trace_arguments(fun, arguments, TraceOptions(varying=retrace.varying, rebound=retrace.rebound))
        return Traced(traced, Assumptions(traced, arguments))

    found = variants.find(arguments)
    return found or variants.add(arguments, make)[0], retraced[0]


def test_a_variant_takes_arguments_of_its_kind():
    variants = Variants()
    first, retrace = call(np.sin, variants, X)
    assert not any(retrace) and len(variants) == 1
    assert call(np.sin, variants, X + 1) == (first, None)
    assert call(np.sin, variants, X[0])[0] is not first and len(variants) == 2


def test_layouts_count_if_the_trace_asked_for_them():
    variants = Variants()
    first, _ = call(lambda x: x.ravel("K"), variants, X)
    assert first.assumptions.layouts == ("C",)
    assert call(lambda x: x.ravel("K"), variants, X.T.copy().T)[0] is not first
    plain = Variants()
    assert call(np.sin, plain, X)[0] is call(np.sin, plain, X.T.copy().T)[0]


def test_numbers_that_tracing_needs_are_static_from_then_on():
    def zeros(n):
        return np.zeros(n)

    variants = Variants()
    first, _ = call(zeros, variants, 3)
    arguments = take_apart(zeros, (3,))
    variants.make_static(arguments)
    assert arguments.static == {0} and call(zeros, variants, 3)[0] is first and call(zeros, variants, 4)[0] is not first
    variants.clear()
    fresh: Arguments = take_apart(zeros, (3,))
    variants.make_static(fresh)
    assert not fresh.static and len(variants) == 0


def test_a_number_outside_that_changed_becomes_an_operand(monkeypatch):
    def scaled(x):
        return x * FACTOR

    variants = Variants()
    first, _ = call(scaled, variants, X)
    monkeypatch.setitem(scaled.__globals__, "FACTOR", 3.0)
    assert [outside.path for outside in first.assumptions.changed()] == ["FACTOR"]
    second, retrace = call(scaled, variants, X)
    assert [outside.path for outside in retrace.changed] == ["FACTOR"] and len(second.assumptions.operands.reads) == 1
    monkeypatch.setitem(scaled.__globals__, "FACTOR", 4.0)
    assert call(scaled, variants, X) == (second, None) and second.assumptions.changed() == []


def test_the_oldest_of_many_variants_is_dropped():
    variants, arguments = Variants(), take_apart(np.sin, (X,))
    made = []
    for _ in range(VARIANTS + 1):
        traced = trace_arguments(np.sin, take_apart(np.sin, (X,)))
        made.append(Traced(traced, Assumptions(traced, arguments)))
        _, dropped = variants.add(arguments, lambda _: made[-1])
    assert dropped == made[:1] and len(variants) == VARIANTS
    variants.drop(lambda one: one is made[-1])
    assert variants.find(arguments) is made[-2]
