"""One bad kernel per invariant of the loop verifier."""

from __future__ import annotations

from pathlib import Path

import pytest

from bwcompiler.errors import InternalError
from bwcompiler.ir import loop_verifier
from bwcompiler.ir.extent import Index
from bwcompiler.ir.loop import OUTPUT, SCRATCH, Accumulate, Accumulator, Buffer, Fill, Let, Loop, Offset, Reduce, Store, load
from bwcompiler.ir.loop_verifier import verify_kernel
from bwcompiler.ir.scalar import Scalar, cast, const, guard, in_range, index_value, select
from bwcompiler.ir.types import F32, F64, I64
from tests.unit.ir.loop_kernels import at, buffer, element, index, kernel, loop, row_sums

X, Y, Z = buffer("x", 4, 5), buffer("y", 4, role=OUTPUT), buffer("z", role=OUTPUT)
ROW, COLUMN = index(4), index(5, "j")
ONE = const(1.0, F64)
A = Accumulator("a", "add", F64)
BEST = Accumulator("best", "argmax", F64)
FILL = Fill(Y, ONE)
LET = Let("s", ONE)


def store(value, place=ROW):
    return Store(Y, at(Y, place), value)


GOOD = {
    "row_sums": row_sums(),
    "guarded": kernel([X, Y], loop(ROW, store(guard(in_range(ROW.extent() - 1, 0, 4), element(X, ROW.extent() - 1, 0), ONE)))),
    "no_iterations": kernel([X, Y], FILL, loop(none := index(0), store(element(X, 9, 9), none))),
    "no_elements": kernel([Buffer("e", F64, (0,), OUTPUT)]),
    "running": kernel([X, Y], Reduce(A), loop(ROW, Accumulate(A, "add", element(X, ROW, 0)), store(A.total()))),
    "gather": kernel([X, Y], loop(ROW, store(load(X, Offset(0, ((index_value(ROW.extent()), 5),)))), kind="vector")),
}

BAD = {
    # check_buffers
    "declared twice": kernel([X, Y, X], FILL),
    "two buffers have one name": kernel([Y, buffer("y", 4, role=SCRATCH)], FILL),
    "unknown role": kernel([Y, buffer("x", 4, role="shared")], FILL),
    "x is used but not declared": kernel([Y], loop(ROW, store(element(X, ROW, 0)))),
    "y is used but not declared": kernel([X], FILL),
    # check_indices
    "index i is that of an enclosing loop": kernel([Y], loop(ROW, loop(ROW, store(ONE)))),
    "its loop runs to 3": kernel([Y], Loop(ROW, 3, [store(ONE)])),
    "index j is read outside": kernel([X, Y], loop(ROW, store(element(X, ROW, COLUMN)))),
    "index i is read outside": kernel([Y], loop(ROW, store(ONE)), store(ONE)),
    "has bounds 1..3": kernel([Y], Loop(Index(1, 3, "k"), 4, [FILL])),
    # check_lets
    "let s is read where it is not made": kernel([Y], loop(ROW, store(LET.ref())), loop(ROW, LET)),
    "let t is read where": kernel([Y], loop(COLUMN, t := Let("t", ONE)), loop(ROW, store(t.ref()))),
    "let s is made twice": kernel([Y], LET, LET, FILL),
    # check_accumulators
    "a is fed before it is opened": kernel([Y], loop(ROW, Accumulate(A, "add", ONE)), Reduce(A), FILL),
    "a of add is fed with multiply": kernel([Y], Reduce(A), loop(ROW, Accumulate(A, "multiply", ONE)), FILL),
    "a position goes with argmax": kernel([Y], Reduce(BEST), loop(ROW, Accumulate(BEST, "argmax", ONE)), FILL),
    "the total of a is read before it is known": kernel([Y], Reduce(A), store(A.total(), 0), loop(ROW, Accumulate(A, "add", ONE))),
    "the total of a is read in a vector loop": kernel(
        [Y], Reduce(A), loop(ROW, Accumulate(A, "add", ONE), store(A.total()), kind="vector")),
    # check_offsets
    "offset 5*i + 5 into x runs over 5..20": kernel([X, Y], loop(ROW, store(element(X, ROW.extent() + 1, 0)))),
    "offset i - 1 into y": kernel([Y], loop(ROW, store(ONE, ROW.extent() - 1))),
    # check_dtypes
    "what is written into y is f32": kernel([Y], loop(ROW, store(const(1.0, F32)))),
    "what is combined into a is f32": kernel([Y], Reduce(A), loop(ROW, Accumulate(A, "add", const(1.0, F32))), FILL),
    "a condition is f64": kernel([Y], loop(ROW, store(select(ONE, ONE, ONE)))),
    "an operand of add is f32": kernel([Y], loop(ROW, store(Scalar("add", (ONE, const(1.0, F32)), F64)))),
    "an offset term is f64": kernel([X, Y], loop(ROW, store(load(X, Offset(0, ((ONE, 1),)))))),
    "the position for best is f64": kernel([Y], Reduce(BEST), loop(ROW, Accumulate(BEST, "argmax", ONE, ONE)), FILL),
    "add is i64, not f64": kernel([Y], loop(ROW, store(cast(Scalar("add", (ONE, ONE), I64), F64)))),
    # check_roles
    "input x is written": kernel([X, Y], FILL, loop(ROW, Accumulate((X, at(X, ROW, 0)), "add", ONE))),
    "out buffer z is never written": kernel([Y, Z], FILL),
    # check_vector_loops
    "has a Loop in its body": kernel([Y], loop(ROW, loop(COLUMN, store(ONE)), kind="vector")),
    "unknown kind 'parallel'": kernel([Y], loop(ROW, store(ONE), kind="parallel")),
    "store into one element of y": kernel([Y], loop(ROW, store(ONE, 0), kind="vector")),
}


@pytest.mark.parametrize("name", GOOD)
def test_valid(name):
    verify_kernel(GOOD[name])


@pytest.mark.parametrize("message", BAD)
def test_invalid(message):
    with pytest.raises(InternalError) as caught:
        verify_kernel(BAD[message])
    first, _, text = str(caught.value).partition("\n\n")
    assert message in first
    assert text.startswith("kernel k0(")                                       # the kernel is shown


def test_every_check_has_a_bad_kernel():
    text = Path(__file__).read_text(encoding="utf-8")
    checks = [name for name in vars(loop_verifier) if name.startswith("check_")]
    assert checks
    assert all(f"# {name}\n" in text for name in checks)
    assert all(f"    {name} " in (loop_verifier.__doc__ or "") for name in checks)
