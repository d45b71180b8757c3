"""Integers that depend on loop indices."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from bwcompiler.ir.extent import (
    Affine,
    Index,
    Section,
    add_extents,
    divided,
    element_count,
    evaluate,
    known_le,
    lower,
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
    assert a == b and hash(a) == hash(b)
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


def elements(region):
    """The positions that a region of known extents covers."""
    axes = [[start + step * k for k in range(size)] for start, size, step in zip(*region, strict=True)]
    return set(itertools.product(*axes))


AXIS = st.tuples(st.integers(0, 4), st.integers(0, 3), st.sampled_from((1, 2, -1, -2)))
REGIONS = st.lists(AXIS, min_size=2, max_size=2).map(lambda axes: Section(*zip(*axes, strict=True)))


@given(st.integers(-30, 30), st.integers(-4, 4), st.sampled_from([-3, -2, -1, 1, 2, 3, 5]))
def test_divided_rounds_up(constant, times, divisor):
    extent = add_extents(constant, scale_extent(I.extent(), times * divisor))
    found = divided(extent, divisor)
    assert all(evaluate(found, {I: k}) == -(-evaluate(extent, {I: k}) // divisor) for k in range(5))
    assert divided(I.extent() + constant, 2) is None


@given(REGIONS, REGIONS)
def test_regions_that_are_apart_share_nothing(a, b):
    assert a.is_apart(b) == b.is_apart(a)
    if a.is_apart(b):
        assert not elements(a) & elements(b)
    union = a.joined(b)
    if union is not None:
        assert elements(union) == elements(a) | elements(b)


def test_regions_that_move_with_an_index():
    row, next_row = Section((I.extent(), 0), (1, 6), (1, 1)), Section((I.extent() + 1, 0), (1, 6), (1, 1))
    assert row.is_apart(next_row) and not row.is_apart(row)
    assert not row.is_apart(Section((J.extent(), 0), (1, 6), (1, 1)))
    assert row.joined(next_row) == next_row.joined(row) == Section((I.extent(), 0), (2, 6), (1, 1))


def test_even_and_odd_places_are_apart():
    even, odd = Section((0,), (5,), (2,)), Section((1,), (5,), (-2,))
    assert even.is_apart(odd) and odd.is_apart(even) and not even.is_apart(Section((2,), (3,), (2,)))
    assert even.is_apart(Section((3,), (1,), (1,))) and not even.is_apart(Section((3,), (2,), (1,)))
    assert not even.is_apart(Section((3,), (3,), (3,))) and Section((0,), (3,), (4,)).is_apart(Section((1,), (2,), (6,)))
    moving = Section((2 * I.extent(),), (5,), (2,))
    assert moving.is_apart(odd) and not Section((I.extent(),), (5,), (2,)).is_apart(odd)
    assert moving.is_apart(Section((2 * I.extent() + 3,), (1,), (1,))) and not moving.is_apart(Section((3 * I.extent() + 1,), (1,), (1,)))
