"""Looking back through chains of updates: what is found is what a walk over every update finds, in few looks however long the chain."""

import itertools
import math

import numpy as np
import pytest

from bwcompiler import ops
from bwcompiler.compiler.pipeline import derive
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.ir.extent import Affine, Index, Section
from bwcompiler.ir.op import Record, input_value
from bwcompiler.ir.types import F64, tensor
from bwcompiler.passes.derivatives import masks
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED
from bwcompiler.passes.rewriting.update_chains import before_updates, versions


def _walked(x, section):
    while x.op.name in ("slice_update", "slice_add"):
        if not section.is_apart(Section(x.attrs["starts"], x.operands[1].shape, x.attrs["steps"])):
            break
        x = x.operands[0]
    return x


def _updated(x, section, op=ops.slice_update):
    part = input_value(tensor(F64, section.sizes))
    with Record():
        return op(x, part, starts=section.starts, steps=section.steps)


def _element(*index):
    return Section(index, (1,) * len(index), (1,) * len(index))


def _shuffled(count):
    return np.random.default_rng(0).permutation(count).tolist()


def _rows_of(count):
    side = math.isqrt(count)
    return side, list(itertools.product(range(side), repeat=2))


# name -> (shape, per step what it reads, then writes), of about `count` steps
def _forward(count):
    return (count,), [([_element(k), _element(max(k - 1, 0))], _element(k)) for k in range(count)]


def _backward(count):
    return (count,), _forward(count)[1][::-1]


def _in_any_order(count):
    return (count,), [([_element(k)], _element(k)) for k in _shuffled(count)]


def _in_a_large_array(count):
    return (10**9,), [([_element(7919 * k), _element(7919 * k + 1)], _element(7919 * k)) for k in range(count)]


def _sweeps(count):
    return (50,), [([_element(k - 1), _element(k + 1)], _element(k)) for _ in range(count // 48) for k in range(1, 49)]


def _rows(count):
    return (count, 4), [([Section((k, 0), (1, 4), (1, 1))], Section((k, 0), (1, 4), (1, 1))) for k in range(count)]


def _columns(count):
    return (4, count), [([Section((0, k), (4, 1), (1, 1))], Section((0, k), (4, 1), (1, 1))) for k in range(count)]


def _grid(count):
    side, places = _rows_of(count)
    return (side + 1, side + 1), [([_element(i + 1, j), _element(i, j + 1), _element(max(i - 1, 0), j)], _element(i, j)) for i, j in places]


def _grid_in_any_order(count):
    side, places = _rows_of(count)
    return (side, side), [([_element(*places[k])], _element(*places[k])) for k in _shuffled(len(places))]


def _windows(count):
    return (count + 8,), [([Section((k + 8,), (1,), (1,))], Section((k,), (8,), (1,))) for k in range(count)]


KINDS = [_forward, _backward, _in_any_order, _in_a_large_array, _sweeps, _rows, _columns, _grid, _grid_in_any_order, _windows]


@pytest.mark.parametrize("kind", KINDS)
def test_looks_grow_with_the_logarithm_of_the_chain(kind):
    count = 1600
    shape, steps = kind(count)
    x = input_value(tensor(F64, shape))
    looks = []
    for reads, written in steps:
        looks += [sum(1 for _ in versions(x, section)) for section in reads]
        x = _updated(x, written)
    assert np.mean(looks) <= 2 * math.log2(count)
    assert max(looks) <= 8 * math.log2(count)


@pytest.mark.parametrize("kind", KINDS)
def test_versions_found_are_those_of_a_walk(kind):
    shape, steps = kind(200)
    x = input_value(tensor(F64, shape))
    for number, (reads, written) in enumerate(steps):
        for section in reads:
            assert before_updates(x, section) is _walked(x, section)
        x = _updated(x, written, ops.slice_add if number % 3 else ops.slice_update)


@pytest.mark.parametrize("seed", range(4))
def test_random_chains(seed):
    """Parts of any size with any steps, of arrays of any rank, in trees of versions."""
    random = np.random.default_rng(seed)
    shape = tuple(random.integers(0 if seed == 3 else 1, 9, size=random.integers(1, 4)).tolist())

    def part():
        starts, sizes, steps = [], [], []
        for extent in shape:
            size = int(random.integers(0, extent + 1))
            step = int(random.integers(1, 3)) if size and (size - 1) * 2 < extent else 1
            start = int(random.integers(0, extent - (size - 1) * step)) if size else 0
            backwards = size > 0 and random.random() < 0.3
            starts.append(start + (size - 1) * step if backwards else start)
            sizes.append(size)
            steps.append(-step if backwards else step)
        return Section(tuple(starts), tuple(sizes), tuple(steps))

    made = [input_value(tensor(F64, shape))]
    for _ in range(150):
        x = made[-1] if random.random() < 0.9 else made[random.integers(len(made))]
        read = part()
        assert before_updates(x, read) is _walked(x, read)
        made.append(_updated(x, part()))


def test_parts_that_move_with_a_loop():
    i = Index(0, 8, "i").extent()
    x = first = _updated(input_value(tensor(F64, (10,))), Section((i,), (1,), (1,)))
    for k in range(20):
        x = _updated(x, Section((Affine(1, i.terms),), (1,), (1,)) if k % 2 else _element(9))
    assert before_updates(x, Section((i,), (1,), (1,))) is _walked(x, Section((i,), (1,), (1,)))
    assert before_updates(first, Section((Affine(1, i.terms),), (1,), (1,))) is first.operands[0]
    assert before_updates(first, _element(9)) is first.operands[0]
    assert before_updates(first, _element(3)) is first


def test_a_recurrence_that_is_written_out_reads_numbers(monkeypatch):
    """The derivative of 600 updates: each part is compared with a few others, and `masks` with MOST_WRITES at most; no read of the array is
    left."""
    compared = []
    is_apart = Section.is_apart
    monkeypatch.setattr(Section, "is_apart", lambda self, other: compared.append(1) or is_apart(self, other))

    def recurrence(x):
        y = x * 1.0
        for i in range(1, 600):
            y[i] += 0.5 * y[i - 1]
        return np.sum(y * y)

    joint = derive(trace(recurrence, (np.ones(600),), autoloop=False).graph, [0], [INPUT_SEED]).graph
    assert len(compared) < 600 * (20 + masks.MOST_WRITES)
    updated = [value for value in joint.body if value.op is ops.slice and value.operands[0].op.name in ("slice_update", "slice_add")]
    assert not updated
