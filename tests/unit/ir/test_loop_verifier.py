"""One bad kernel per invariant of the loop verifier."""

from __future__ import annotations

from pathlib import Path

import pytest

from bwcompiler.errors import InternalError
from bwcompiler.ir.extent import Index
from bwcompiler.ir.loop import OUTPUT, SCRATCH, Accumulate, Accumulator, Buffer, Fill, Kernel, Let, Loop, Offset, Reduce, Store, load
from bwcompiler.ir.scalar import Scalar, Word, cast, const, guard, in_range, index_value, select
from bwcompiler.ir.semantics import loop_verifier
from bwcompiler.ir.semantics.loop_verifier import verify_kernel
from bwcompiler.ir.types import BOOL, F32, F64, I64
from tests.unit.ir.loop_kernels import at, buffer, element, index, kernel, loop, row_sums

X, Y, Z = buffer("x", 4, 5), buffer("y", 4, role=OUTPUT), buffer("z", role=OUTPUT)
ROW, COLUMN = index(4), index(5, "j")
K, L, M, N = (index(4, name) for name in "klmn")
ONE, ZERO = const(1.0, F64), const(0, I64)
A, B, C = (Accumulator(name, "add", F64) for name in "abc")
BEST = Accumulator("best", "argmax", F64)
FILL = Fill(Y, ONE)
LET = Let("s", ONE)


def store(value, place=ROW):
    return Store(Y, at(Y, place), value)


FACTOR = Word("c", F64)

GOOD = {
    "row_sums": row_sums(),
    "guarded": kernel([X, Y], loop(ROW, store(guard(in_range(ROW.extent() - 1, 0, 4), element(X, ROW.extent() - 1, 0), ONE)))),
    "no_iterations": kernel([X, Y], FILL, loop(none := index(0), store(element(X, 9, 9), none))),
    "words": Kernel("k0", [X, Y], [loop(ROW, store(element(X, ROW, COLUMN) * const(FACTOR, F64)))], [COLUMN, FACTOR]),
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
    # check_words
    "a word is declared twice": Kernel("k0", [Y], [FILL], [ROW, ROW]),
    "word c is read but not declared": kernel([Y], Fill(Y, const(Word("c", F64), F64))),
    # check_indices
    "index i is that of an enclosing loop": kernel([Y], loop(ROW, loop(ROW, store(ONE)))),
    "its loop runs to 3": kernel([Y], Loop(ROW, 3, [store(ONE)])),
    "index j is read outside": kernel([X, Y], loop(ROW, store(element(X, ROW, COLUMN)))),
    "index i is read outside": kernel([Y], loop(ROW, store(ONE)), store(ONE)),
    "index k is read outside": kernel([Y], loop(ROW, store(cast(index_value(K.extent()), F64)))),
    "index l is read outside": kernel([X, Y], loop(ROW, store(guard(in_range(L.extent(), 0, 4), element(X, 0, 0), ONE)))),
    "index m is read outside": kernel([Y], FILL, Loop(Index(0, M.extent() - 1, "p"), M.extent(), [])),
    "index n is read outside": kernel([Y], FILL, loop(ROW, Accumulate((Y, at(Y, N)), "add", ONE))),
    "has bounds 1..3": kernel([Y], Loop(Index(1, 3, "k"), 4, [FILL])),
    # check_lets
    "let s is read where it is not defined": kernel([Y], loop(ROW, store(LET.ref())), loop(ROW, LET)),
    "let t is read where": kernel([Y], loop(COLUMN, t := Let("t", ONE)), loop(ROW, store(t.ref()))),
    "let s is defined twice": kernel([Y], LET, LET, FILL),
    # check_accumulators
    "a is fed before it is opened": kernel([Y], loop(ROW, Accumulate(A, "add", ONE)), Reduce(A), FILL),
    "a of add is fed with multiply": kernel([Y], Reduce(A), loop(ROW, Accumulate(A, "multiply", ONE)), FILL),
    "a position goes with argmax": kernel([Y], Reduce(BEST), loop(ROW, Accumulate(BEST, "argmax", ONE)), FILL),
    "a of add is fed with argmax": kernel([Y], Reduce(A), loop(ROW, Accumulate(A, "argmax", ONE, ZERO)), FILL),
    "a: a position goes with argmax and argmin, and only with them": kernel([Y], Reduce(A), loop(ROW, Accumulate(A, "add", ONE, ZERO)), FILL),
    "the total of best is read before it is known": kernel(
        [Y], Reduce(BEST), store(cast(Scalar("found", (), I64, BEST), F64), 0), loop(ROW, Accumulate(BEST, "argmax", ONE, ZERO)), FILL),
    "the total of b is read before it is known": kernel([Y], FILL, Reduce(B), loop(ROW, store(B.total()))),        # never fed
    "accumulator a is opened twice": kernel([Y], FILL, loop(ROW, Reduce(A)), loop(COLUMN, Reduce(A))),
    "accumulator c is fed before it is opened": kernel([Y], FILL, loop(COLUMN, Reduce(C)), loop(ROW, Accumulate(C, "add", ONE))),
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
    "what is written into y is i64": kernel([Y], Fill(Y, ZERO)),
    "what is combined into y is i64": kernel([Y], FILL, loop(ROW, Accumulate((Y, at(Y, ROW)), "add", ZERO))),
    "a choice of select is f32": kernel([Y], loop(ROW, store(Scalar("select", (const(True, BOOL), ONE, const(1.0, F32)), F64)))),
    "a choice of select is i64": kernel([Y], loop(ROW, store(Scalar("select", (const(True, BOOL), ZERO, ONE), F64)))),
    "an element of x is f32, not f64": kernel([X, Y], loop(ROW, store(cast(Scalar("load", (), F32, (X, Offset(0))), F64)))),
    "an offset term is f32": kernel([Y], FILL, loop(ROW, Store(Y, Offset(0, ((const(0.0, F32), 1),)), ONE))),
    "an operand of add is f32": kernel([Y], loop(ROW, store(Scalar("add", (ONE, const(1.0, F32)), F64)))),
    "an offset term is f64": kernel([X, Y], loop(ROW, store(load(X, Offset(0, ((ONE, 1),)))))),
    "the position for best is f64": kernel([Y], Reduce(BEST), loop(ROW, Accumulate(BEST, "argmax", ONE, ONE)), FILL),
    "add is i64, not f64": kernel([Y], loop(ROW, store(cast(Scalar("add", (ONE, ONE), I64), F64)))),
    # check_roles
    "input x is written": kernel([X, Y], FILL, loop(ROW, Accumulate((X, at(X, ROW, 0)), "add", ONE))),
    "out buffer z is never written": kernel([Y, Z], FILL),
    # check_vector_loops
    "has a Loop in its body": kernel([Y], loop(ROW, loop(COLUMN, store(ONE)), kind="vector")),
    "has a Fill in its body": kernel([Y], loop(ROW, FILL, kind="vector")),
    "has a Reduce in its body": kernel([Y], FILL, loop(ROW, Reduce(A), kind="vector")),
    "unknown kind 'parallel'": kernel([Y], loop(ROW, store(ONE), kind="parallel")),
    "store into one element of y": kernel([Y], loop(ROW, store(ONE, 0), kind="vector")),
    # check_products
    "is not a product of two matrices": kernel([Y], loop(ROW, loop(COLUMN, store(ONE)), kind="product")),
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
