"""The text of kernels."""

from __future__ import annotations

import pytest

from bwcompiler import ops  # noqa: F401  (registers the ops)
from bwcompiler.ir.loop import OUTPUT, SCRATCH, Accumulate, Accumulator, Buffer, Fill, Let, Offset, Reduce, Store, load
from bwcompiler.ir.op import input_value
from bwcompiler.ir.scalar import Scalar, cast, const, guard, in_range, index_value, operation, select
from bwcompiler.ir.texts.loop_printer import kernel_to_text
from bwcompiler.ir.types import BOOL, F32, F64, I64, tensor
from tests.unit.ir.loop_kernels import at, buffer, element, index, kernel, loop, row_sums

X, V = buffer("x", 4, 5), buffer("v", 3, dtype=I64)
ROW, COLUMN = index(4), index(5, "j")


def shown(scalar):
    """How a scalar is printed where ROW and COLUMN are in scope."""
    y = buffer("y", 4, 5, role=OUTPUT, dtype=scalar.dtype)
    text = kernel_to_text(kernel([X, V, y], loop(ROW, loop(COLUMN, Store(y, at(y, ROW, COLUMN), scalar)))))
    return text.split("store %y[i, j], ")[1].strip()


def test_whole_kernel():
    assert kernel_to_text(row_sums()) == """\
kernel k0(%x: in f64[3,40], %y: out f64[3])
  for i in 0..3
    reduce total: f64 = add
    for j in 0..40 vector
      let twice = %x[i, j] * 2.0
      total add= twice
    store %y[i], total
"""


def test_names_are_unique_in_scope_and_free_again_below():
    y = buffer("y", 4, 5, role=OUTPUT)
    i, j = index(4), index(5)
    first, second, third = (Let("a", element(X, i, 0)) for _ in range(3))
    body = [first, second, loop(j, Store(y, at(y, i, j), first.ref() + second.ref()))]
    text = kernel_to_text(kernel([X, y], loop(i, *body), loop(i, third, Store(y, at(y, i, 0), third.ref()))))
    assert text.splitlines()[1:] == [
        "  for i in 0..4", "    let a = %x[i, 0]", "    let a_1 = %x[i, 0]", "    for i_1 in 0..5", "      store %y[i, i_1], a + a_1",
        "  for i in 0..4", "    let a = %x[i, 0]", "    store %y[i, 0], a"]


def test_names_of_a_graph():
    """What comes from a value is called what the text of the graph calls it; literals have no name there."""
    value, literal, other = (input_value(tensor(F64, (3,)), "hint") for _ in range(3))
    source, result = Buffer("hint", F64, (3,), "in", value), Buffer("y", F64, (3,), "out", other)
    k = index(3, "k")
    let, two = Let("hint", element(source, k) * 2.0, other), Let("two", const(2.0, F64), literal)
    given = {value: "%p.ct", literal: "2.0", other: '%"p[0]"'}
    made = kernel([source, result], loop(k, two, let, Store(result, at(result, k), let.ref() * two.ref())))
    assert kernel_to_text(made, given) == """\
kernel k0(%p.ct: in f64[3], %"p[0]": out f64[3])
  for k in 0..3
    let two = 2.0
    let p_0_ = %p.ct[k] * 2.0
    store %"p[0]"[k], p_0_ * two
"""
    assert kernel_to_text(made).startswith("kernel k0(%hint: in f64[3], %y: out f64[3])")


def test_fill_search_and_scratch():
    s, y = buffer("s", 2, role=SCRATCH), buffer("y", role=OUTPUT, dtype=I64)
    best = Accumulator("best", "argmax", F64)
    search = loop(ROW, Accumulate(best, "argmax", element(X, ROW, 0), index_value(ROW.extent())))
    found = Scalar("found", (), I64, best)
    text = kernel_to_text(kernel([X, s, y], Fill(s, const(0.0, F64)), Reduce(best), search, Store(y, Offset(0), found)))
    assert text == """\
kernel k0(%x: in f64[4,5], %s: scratch f64[2], %y: out i64[])
  fill %s, 0.0
  reduce best: f64 = argmax
  for i in 0..4
    best argmax= %x[i, 0] at i
  store %y[], position(best)
"""


i, j = ROW.extent(), COLUMN.extent()
x = load(X, at(X, ROW, COLUMN))


@pytest.mark.parametrize("scalar, text", [
    (load(X, at(X, ROW, COLUMN)), "%x[i, j]"),
    (load(X, at(X, 3 - i, 4 - j)), "%x[3 - i, 4 - j]"),
    (load(X, Offset(i * 5 + 4)), "%x[i, 4]"),
    (load(X, Offset(i * 5 + j - 6)), "%x[i - 1, j - 1]"),                   # under a guard
    (load(X, Offset(i * 6)), "%x[i, i]"),
    (load(X, Offset(j * 3)), "%x[+ 3*j]"),
    (load(X, Offset(0)), "%x[0, 0]"),
    (load(X, at(X, element(V, 2), COLUMN)), "%x[%v[2], j]"),
    (load(X, Offset(j, ((index_value(i), 5),))), "%x[(i), j]"),               # data that happens to be an index
    (load(X, Offset(j, ((element(V, 2) + const(-1, I64), 5),))), "%x[(%v[2] + -1), j]"),
    (load(X, Offset(j - 1, ((element(V, 0), -5),))), "%x[+ -5*%v[0] + j - 1]"),
    (load(X, Offset(j, ((element(V, 0), 5), (element(V, 1), 1)))), "%x[+ 5*%v[0] + %v[1] + j]"),  # the terms' order is kept
    (load(X, Offset(j, ((element(V, 0), 2), (element(V, 1), 1)))), "%x[+ 2*%v[0] + %v[1] + j]"),
    (load(buffer("e", 3, 0), Offset(i)), "%e[+ i]"),
], ids=str)
def test_positions(scalar, text):
    assert shown(scalar) == text


@pytest.mark.parametrize("scalar, text", [
    ((x + 1.0) * x, "(%x[i, j] + 1.0) * %x[i, j]"),
    (x - (x - x), "%x[i, j] - (%x[i, j] - %x[i, j])"),
    (x - x - x, "%x[i, j] - %x[i, j] - %x[i, j]"),
    (-(x * 2.0), "-(%x[i, j] * 2.0)"),
    (-x / x, "-%x[i, j] / %x[i, j]"),
    (operation("exp", x), "exp(%x[i, j])"),
    (operation("maximum", x, 0.0), "maximum(%x[i, j], 0.0)"),
    (cast(x, F32), "f32(%x[i, j])"),
    (x < 0.0, "%x[i, j] < 0.0"),
    ((x < 0.0).equals(const(True, BOOL)), "(%x[i, j] < 0.0) == true"),
    ((x < 0.0) | (x > 1.0), "(%x[i, j] < 0.0) | (%x[i, j] > 1.0)"),
    (select(x < 0.0, x, 0.0), "select(%x[i, j] < 0.0, %x[i, j], 0.0)"),
    (guard(in_range(i - 1, 0, 2), x, const(0.0, F64)), "%x[i, j] if in_range(i - 1, 0, 2) else 0.0"),
    (guard(in_range(j - 3, 0, 2), load(X, at(X, i, j - 3)), x), "%x[i, j - 3] if in_range(j - 3, 0, 2) else %x[i, j]"),
    (guard(in_range(i, 0, 2), x, const(0.0, F64)) + x, "(%x[i, j] if in_range(i, 0, 2) else 0.0) + %x[i, j]"),
    (index_value(i * 2 + 1) * index_value(j), "index(2*i + 1) * j"),
    (index_value(i) + index_value(j) * 2, "i + j * 2"),
    (-x, "-%x[i, j]"),
    (operation("negative", const(-2.0, F64)) * x, "-(-2.0) * %x[i, j]"),
    (x + const(3, F64), "%x[i, j] + 3.0"),                                 # the number that is meant
    (cast(const(2.0, F32), F64), "f64(2.0:f32)"),
    (cast(const(2, I64), F64), "f64(2)"),
    (select(const(1.0, F32) < const(2.0, F32), x, x), "select(1.0:f32 < 2.0:f32, %x[i, j], %x[i, j])"),
    (const(float("inf"), F64) * x, "inf * %x[i, j]"),
], ids=str)
def test_expressions(scalar, text):
    assert shown(scalar) == text
