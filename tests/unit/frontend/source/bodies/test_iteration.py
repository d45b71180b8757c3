"""What loops go over changes while they do: each element is read when it is its turn."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerIndexError


def shrinks_the_rest(b):
    total = 0.0
    for e in b:
        b[1:] = b[1:] * 0.8
        total += e
    return total


def goes_over_it_twice(b):
    total = 0.0
    for e, f in zip(b, b, strict=True):
        b += 0.8
        total += e * f
    return total


def left_early(b):
    total = 0.0
    for k, e in enumerate(b):
        b[-1] = total
        total += e * k
        if total > 3:
            break
    return total


def over_a_view(b):
    total = 0.0
    for e in b[::2]:
        for f in b[1:]:
            b[-1] += 0.1 * f
            total += e * f
    return total


def over_rows(b):
    a = np.outer(b, b) * b
    total = 0.0
    for row, other in zip(a.T, a[1:], strict=False):
        a[0] *= 0.9
        total += row @ other
        row[1] += 1
    return total + np.sum(a)


def mapped_elements(b):
    total = 0.0
    for e in map(np.sin, b):
        b *= 1.1
        total += e
    return total


def kept_elements(b):
    def changed(e):
        b[-1] += e
        return e

    kept = []
    for e in b:
        b *= 1.1
        kept.append(e)
    return sum(kept) + kept[0] + sum([changed(e) for e in b]) + sum(changed(e) for e in b)


def over_an_iterator(b):
    numbers, total = iter(b), 0.0
    later = (e * e for e in b)
    b *= 2
    for _ in range(4):
        e = next(numbers)
        b *= 1.3
        total += e
    return total + sum(later)


@pytest.mark.parametrize("size", [6, 12])
@pytest.mark.parametrize("program", [shrinks_the_rest, goes_over_it_twice, left_early, over_a_view, over_rows, mapped_elements, kept_elements,
                                     over_an_iterator], ids=lambda program: program.__name__)
def test_elements_are_read_when_it_is_their_turn(program, size, rng):
    x = 0.5 * rng.standard_normal(size)
    assert bw.jit(program)(x.copy()) == pytest.approx(program(x.copy()), rel=1e-12)
    if program is not left_early:
        assert bw.jit(program, autoloop=False)(x.copy()) == pytest.approx(program(x.copy()), rel=1e-12)


@pytest.mark.usefixtures("assuming")
def test_zip_strict_of_what_the_same_data_select():
    def selected(x):
        total = 0.0
        for k, v in zip(np.nonzero(x > 0.5)[0], x[x > 0.5], strict=True):
            total += v * x[k] * (k + 1)
        return total

    def selected_otherwise(x):
        total = 0.0
        for k, v in zip(np.nonzero(x > 0.5)[0], x[x > 0.7], strict=True):
            total += v * k
        return total
    x = np.array([0.8, 0.31, 1.2, 0.6, 0.45])
    assert bw.jit(selected)(x) == pytest.approx(selected(x), rel=1e-13)
    np.testing.assert_allclose(bw.grad(selected)(x), np.where(x > 0.5, 2 * x * np.arange(1, 6), 0.0), rtol=1e-13)
    with pytest.raises(TracerIndexError):                          # Python may raise, in an iteration
        bw.compile(selected_otherwise, x)
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        bw.jit(selected_otherwise)(x)
    assert bw.jit(selected_otherwise)(x[:3]) == pytest.approx(selected_otherwise(x[:3]), rel=1e-13)
