"""Integers that depend on loop indices."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bwcompiler.ir.extent import (
    Affine,
    Index,
    add_extents,
    element_count,
    evaluate,
    known_le,
    lower,
    same_extent,
    scale_extent,
    substitute,
    upper,
)

I = Index(0, 4, "i")  # noqa: E741
J = Index(1, I.extent() + 2, "j")


def test_constants_are_plain_integers():
    assert add_extents(2, 3) == 5 and scale_extent(4, -2) == -8
    assert type(I.extent() - I.extent()) is int and (I.extent() - I.extent()) == 0


def test_structural_equality():
    a, b = I.extent() + J.extent() + 1, 1 + J.extent() + I.extent()
    assert same_extent(a, b) and hash(a) == hash(b)
    assert a != I.extent() and I.extent() != Index(0, 4, "i").extent()


def test_text():
    assert str(2 * I.extent() - J.extent() - 1) == "2*i - 1*j - 1"
    assert str(I.extent()) == "i"


def test_bounds_of_triangular_indices():
    assert (lower(J.extent()), upper(J.extent())) == (1, 6)
    assert upper(J.extent() - I.extent()) == 2
    assert known_le(J.extent(), 6) is True and known_le(7, J.extent()) is False and known_le(J.extent(), 3) is None


def test_element_count_is_an_upper_bound():
    assert element_count((3, I.extent())) == 12 and element_count(()) == 1


SMALL = st.integers(-3, 3)


@given(SMALL, SMALL, SMALL)
def test_bounds_hold_for_every_number(a, b, c):
    extent = a * I.extent() + b * J.extent() + c
    found = [evaluate(extent, {I: i, J: j}) for i in range(5) for j in range(1, i + 3)]
    assert lower(extent) <= min(found) and upper(extent) >= max(found)
    assert evaluate(substitute(extent, {J: I.extent() + 1}), {I: 2}) == a * 2 + b * 3 + c
    assert isinstance(extent, int | Affine)
