"""What is known of a loop body, and how loops are cut into vectors."""

from __future__ import annotations

import itertools

import pytest

from bwcompiler.ir.loop import Loop
from bwcompiler.ir.texts.loop_parser import parse_kernel
from bwcompiler.lowering.kernels.vector_loops import LONGEST, Body, Piece, group_start, pieces, power_of_two
from bwcompiler.target import Target

AVX2, AVX512 = Target("generic", "+avx2,+fma", 256), Target("generic", "+avx512f,+avx512bw,+avx512vl", 512)
BUFFERS = "%x: in f64[9,64], %f: in f32[64], %n: in i64[64], %m: in bool[64], %y: out f64[9,64], %z: inout f64[600]"


def body(text: str, extent: int = 64) -> Body:
    """Of the loop over j, inside of one over i."""
    lines = "\n".join(f"      {line}" for line in text.strip().split("\n"))
    kernel = parse_kernel(f"kernel k({BUFFERS})\n  for i in 0..9\n    for j in 0..{extent} vector\n{lines}\n")
    outer = kernel.body[0]
    assert isinstance(outer, Loop) and isinstance(outer.body[0], Loop)
    return Body(outer.body[0], lambda buffer: buffer)


def test_steps():
    made = body("let a = %x[i, j] + %z[3*j + i] - %z[64 - j] * %x[i, 5]\nstore %z[%n[j]], a * %x[%n[i], j]")
    assert sorted(map(str, made.steps)) == sorted(map(str, [1, 3, -1, 0, 1, 0, 1, None]))
    assert body("store %y[i, j], f64(j)").steps == [1]


@pytest.mark.parametrize("text, independent", [
    ("store %y[i, j], %x[i, j]", True),
    ("store %y[i, 3], %x[i, j]", False),                                     # all in one place
    ("%y[i, j] add= %x[i, j]", True),
    ("%y[i, 3] add= %x[i, j]", False),
    ("store %z[j], %z[j] * 2.0", True),
    ("store %z[j], %z[j + 1] * 2.0", False),
    ("store %z[j], %z[j + 63] * 2.0", False),
    ("store %z[j], %z[j + 64] * 2.0", True),                                 # beyond the end
    ("store %z[2*j], %z[2*j + 1]", True),                                    # in between
    ("store %z[2*j], %z[2*j + 4]", False),
    ("store %z[3*j], %z[2*j + 200]", True),
    ("store %z[3*j], %z[2*j + 100]", False),
    ("store %z[64*i + j], %z[64*i + j + 64]", True),
    ("store %z[64*i + j], %z[j]", False),
    ("store %z[%n[j]], 1.0", True),                                          # one after the other
    ("store %z[%n[j]], 1.0\nstore %z[%n[j]], 2.0", False),
    ("%z[%n[j]] add= 1.0", False),
    ("store %z[j], %z[%n[j]]", False),
    ("store %z[%n[i] * 1 + j], %z[j]", False),
])
def test_iterations_that_meet(text, independent):
    assert body(text.replace("%n[i] * 1 + j", "%n[i] + j")).independent == independent


def test_dear_loops_add_in_order():
    """All iterations add to one element: dear ones compute side by side what they add one after the other."""
    assert body("%y[i, 3] add= exp(%x[i, j])").independent
    assert not body("%y[i, 3] add= exp(%x[i, j])\nstore %z[j], %y[i, 3]").independent            # which is read in between
    assert not body("%y[i, 3] add= exp(%x[i, j])\n%y[i, 3] add= 1.0").independent                # by turns
    assert not body("%y[i, 3] add= sqrt(%x[i, j])").independent                                  # cheap


def test_merged_arrays_are_one():
    kernel = parse_kernel("kernel k(%x: in f64[80], %y: out f64[80])\n  for j in 0..60 vector\n    store %y[j], %x[j + 1]\n")
    loop = kernel.body[0]
    assert isinstance(loop, Loop)
    assert Body(loop, lambda buffer: buffer).independent
    x, y = kernel.buffers
    assert not Body(loop, lambda buffer: y if buffer is x else buffer).independent


def test_iterations_that_may_run_twice():
    assert body("store %y[i, j], %x[i, j]").pure
    assert not body("store %z[j], %z[j] * 2.0").pure
    assert not body("%y[i, j] add= %x[i, j]").pure


def test_widths():
    cheap = body("store %y[i, j], %x[i, j] * 2.0")
    assert (cheap.native(AVX2), cheap.unit(AVX2), cheap.unit(AVX512)) == (4, 16, 32)
    single = body("store %y[i, j], f64(%f[j])")
    assert single.native(AVX2) == 4                                          # the largest elements count
    dear = body("store %y[i, j], exp(%x[i, j])")
    assert dear.dear and dear.unit(AVX2) == 16
    long = body("let a = %x[i, j]\n" + "\n".join(f"let b{k} = {'a' if k == 0 else f'b{k - 1}'} * 1.5 + 2.0" for k in range(20))
                + "\nstore %y[i, j], b19")
    assert long.unit(AVX2) == 4
    assert body("store %y[i, j], f64(sin(%f[j]))").native(AVX2) == 4         # which computes with doubles
    assert body("store %m[j], %m[j]").native(AVX512) <= LONGEST


def test_widths_of_sums():
    """All lanes at once, but where there would be code for every element of each of some arrays."""
    few, many = [body("store %z[0], " + " + ".join(f"%z[{step}*j]" for step in range(7, last))) for last in (9, 10)]
    assert (few.strip(AVX512), many.strip(AVX512), many.strip(AVX2)) == (32, 8, 4)
    assert body("store %z[0], %z[2*j] + %z[2*j + 1] + %z[j]").strip(AVX2) == 32
    data = " + ".join(f"%x[%n[{k} + j], 0]" for k in range(4))
    assert body(f"store %z[0], {data}").strip(AVX2) == 32
    assert body("store %z[0], exp(%z[j])").strip(AVX2) == 16


def test_what_is_worth_a_vector():
    assert body("store %y[i, j], %x[i, j] * 2.0").worthwhile(AVX2)
    assert body("store %y[i, j], %z[9*j]").worthwhile(AVX2)
    assert not body("store %z[9*j], %x[i, j]").worthwhile(AVX2)
    assert body("store %z[9*j], exp(%x[i, j])").worthwhile(AVX2)
    assert not body("store %z[j], f64(floor_divide(%n[j], 7))").worthwhile(AVX2)
    assert body("store %z[j], f64(floor_divide(%n[j], 8))").worthwhile(AVX2)
    guarded = "store %y[i, j], %x[i, j - 1] if in_range(j, 1, 64) else 0.0"
    assert body(guarded).worthwhile(AVX512) and not body(guarded).worthwhile(Target("generic", "", 128))
    assert not body("store %y[i, j], %x[i, 5] if in_range(j, 1, 64) else 0.0").worthwhile(AVX512)


def test_masks_of_small_elements():
    assert body("store %y[i, j], %x[i, j]").masks(AVX2) and not body("store %m[j], %x[i, j] > 0.0").masks(AVX2)
    assert body("store %m[j], %x[i, j] > 0.0").masks(AVX512)


def test_groups():
    kernel = parse_kernel("kernel k(%x: in f64[30], %y: out f64[30])\n  for j in 0..10\n    store %y[j], %x[3*j + 1] + %x[3*j] + %x[2*j] + %x[7*j]\n"
                          .replace("7*j", "3*j + 2"))
    loop = kernel.body[0]
    assert isinstance(loop, Loop)
    made = Body(loop, lambda buffer: buffer)
    found = {access.offset.affine: group_start(access.buffer, access.offset, step or 0)
             for access, step in zip(made.accesses, made.steps, strict=True)}
    assert sorted(map(str, found.values())) == ["0", "0", "1", "2", "None"]            # the store has none


@pytest.mark.parametrize("pure, masks, dear", [*itertools.product((False, True), repeat=3)])
def test_pieces_are_all_iterations(pure, masks, dear):
    """Each once, or where it may run twice at least once; never one outside."""
    for extent, unit in itertools.product([*range(1, 80), 127, 200], (1, 2, 8, 32, 64)):
        done = [0] * extent
        found = pieces(extent, unit, pure, masks, dear)
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
        if dear and (pure or masks):
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
