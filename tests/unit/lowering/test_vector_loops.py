"""Which loops are vectors, and how loops are cut into vectors."""

from __future__ import annotations

import itertools

import pytest

from bwcompiler.lowering.kernels.analysis.vector_loops import (
    LONGEST,
    Piece,
    can_mask,
    is_outer,
    native_width,
    pieces,
    power_of_two,
    strip_width,
    vector_width,
    worthwhile,
)
from bwcompiler.target import Target
from tests.support.loop_bodies import body

AVX2, AVX512 = Target("generic", "+avx2,+fma", 256), Target("generic", "+avx512f,+avx512bw,+avx512vl", 512)


def test_widths():
    cheap = body("store %y[i, j], %x[i, j] * 2.0")
    assert (native_width(cheap, AVX2), vector_width(cheap, AVX2), vector_width(cheap, AVX512)) == (4, 16, 32)
    single = body("store %y[i, j], f64(%f[j])")
    assert native_width(single, AVX2) == 4                                          # the largest elements count
    dear = body("store %y[i, j], exp(%x[i, j])")
    assert dear.expensive and vector_width(dear, AVX2) == 16
    long = body("let a = %x[i, j]\n" + "\n".join(f"let b{k} = {'a' if k == 0 else f'b{k - 1}'} * 1.5 + 2.0" for k in range(20))
                + "\nstore %y[i, j], b19")
    assert vector_width(long, AVX2) == 4
    assert native_width(body("store %y[i, j], f64(sin(%f[j]))"), AVX2) == 4         # which computes with doubles
    assert native_width(body("store %m[j], %m[j]"), AVX512) <= LONGEST


def test_widths_of_sums():
    """All lanes at once, but where there would be code for every element of each of some arrays."""
    few, many = [body("store %z[0], " + " + ".join(f"%z[{step}*j]" for step in range(7, last))) for last in (9, 10)]
    assert (strip_width(few, AVX512), strip_width(many, AVX512), strip_width(many, AVX2)) == (32, 8, 4)
    assert strip_width(body("store %z[0], %z[2*j] + %z[2*j + 1] + %z[j]"), AVX2) == 32
    data = " + ".join(f"%x[%n[{k} + j], 0]" for k in range(4))
    assert strip_width(body(f"store %z[0], {data}"), AVX2) == 32
    assert strip_width(body("store %z[0], exp(%z[j])"), AVX2) == 16


def test_what_is_worth_a_vector():
    assert worthwhile(body("store %y[i, j], %x[i, j] * 2.0"), AVX2)
    assert worthwhile(body("store %y[i, j], %z[9*j]"), AVX2)
    assert not worthwhile(body("store %z[9*j], %x[i, j]"), AVX2)
    assert worthwhile(body("store %z[9*j], exp(%x[i, j])"), AVX2)
    assert not worthwhile(body("store %z[j], f64(floor_divide(%n[j], 7))"), AVX2)
    assert worthwhile(body("store %z[j], f64(floor_divide(%n[j], 8))"), AVX2)
    guarded = "store %y[i, j], %x[i, j - 1] if in_range(j, 1, 64) else 0.0"
    assert worthwhile(body(guarded), AVX512) and not worthwhile(body(guarded), Target("generic", "", 128))
    assert not worthwhile(body("store %y[i, j], %x[i, 5] if in_range(j, 1, 64) else 0.0"), AVX512)
    assert worthwhile(body(f"let a = %z[5] * %z[2*j]\n{guarded.replace('0.0', 'a')}"), AVX512)
    rows = body("store %y[i, j], %x[i, 5] if in_range(i, 1, 3) else 0.0")
    assert not rows.masked and worthwhile(rows, Target("generic", "", 128))           # the same in all iterations: a branch


def test_what_is_read_with_and_without_a_condition():
    twice = body("let a = %x[i, j]\nstore %y[i, j], a + (%x[i, j] if in_range(j, 1, 64) else 0.0)")
    assert [access.buffer.name for access in twice.masked] == ["x"]


def test_loops_around_short_ones():
    """Dear functions are worth storing elements one by one; other operations are not."""
    for text, dear, cheap in (("store %z[9*j], {}", True, False), ("store %y[i, j], {}", True, False)):
        for expression, expected in (("exp(%x[i, j])", dear), ("%x[i, j] * 2.0", cheap)):
            assert is_outer(body(text.format(expression)), AVX512, ()) is expected
    assert not is_outer(body("store %z[9*j], exp(%x[i, j - 1] if in_range(j, 1, 64) else 0.0)"), AVX512, ())


def test_masks_of_small_elements():
    assert can_mask(body("store %y[i, j], %x[i, j]"), AVX2) and not can_mask(body("store %m[j], %x[i, j] > 0.0"), AVX2)
    assert can_mask(body("store %m[j], %x[i, j] > 0.0"), AVX512)


@pytest.mark.parametrize("pure, masks, expensive", [*itertools.product((False, True), repeat=3)])
def test_pieces_are_all_iterations(pure, masks, expensive):
    """Each once, or where it may run twice at least once; never one outside."""
    for extent, unit in itertools.product([*range(1, 80), 127, 200], (1, 2, 8, 32, 64)):
        done = [0] * extent
        found = pieces(extent, unit, pure, masks, expensive)
        for piece in found:
            assert piece.width == power_of_two(piece.width) <= max(unit, 1)
            assert piece.active is None or (masks and piece.count == 1 and 0 < piece.active < piece.width)
            for k in range(piece.count):
                first = piece.first + k * piece.width
                if piece.clamped:
                    assert pure
                    first = min(first, extent - piece.width)
                for number in range(first, first + (piece.active or piece.width)):
                    done[number] += 1
        assert min(done) >= 1 and (pure or max(done) == 1), (extent, unit, found)
        if expensive and (pure or masks):
            assert len({piece.width for piece in found}) == 1


def test_pieces():
    assert pieces(64, 16, True, True, False) == [Piece(0, 16, 4)]
    assert pieces(70, 16, True, False, False) == [Piece(0, 16, 4), Piece(62, 8)]        # overlaps
    assert pieces(70, 16, False, False, False) == [Piece(0, 16, 4), Piece(64, 4), Piece(68, 2)]
    assert pieces(79, 16, False, True, False) == [Piece(0, 16, 4), Piece(64, 16, 1, 15)]
    assert pieces(5, 16, True, True, False) == [Piece(0, 8, 1, 5)]
    assert pieces(5, 16, True, False, False) == [Piece(0, 4), Piece(1, 4)]
    assert pieces(70, 16, True, True, True) == [Piece(0, 16, 5, None, True)]
    assert pieces(70, 16, False, True, True) == [Piece(0, 16, 4), Piece(64, 16, 1, 6)]
