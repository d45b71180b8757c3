"""What must hold of fused programs, for programs of every kind, and the plain decisions of fusion."""

from __future__ import annotations

import functools
import itertools
import weakref

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import ops
from bwcompiler.frontend import trace
from bwcompiler.ir.access import is_virtual, root
from bwcompiler.ir.contracts.fusion import Call, FusionGroup
from bwcompiler.passes.fusion import recomputation
from bwcompiler.passes.fusion.fuse import _Fusion
from tests.unit.passes.fused_programs import X, each, lowered, network, steps_of, values_of


@each
def test_every_value_is_computed_once_and_after_what_it_reads(function):
    found = lowered(function)
    inlined = {member.value: member.inlined for step in found.fused.steps if isinstance(step, FusionGroup) for member in step.members}
    place = {value: number for number, step in enumerate(found.fused.steps) for value in values_of(step)}
    assert sum(len(values_of(step)) for step in found.fused.steps) == len(place)
    for value in found.simplified.body:
        if value not in place:
            assert is_virtual(value) or root(value) is not value or value.op.name == "item" or value not in found.fused.stored
    for value, number in place.items():
        pending, seen = list(value.operands), set()
        while pending:
            operand = root(pending.pop())
            if operand in seen:
                continue
            seen.add(operand)
            if operand in place and operand not in inlined.get(value, ()):
                assert place[operand] <= number
            else:
                pending += operand.operands


def test_an_elementwise_chain_is_one_loop():
    found = lowered(lambda x: np.sin(np.exp(x) + 1.0) * x, X, gradient=False)
    [step] = found.fused.steps
    assert isinstance(step, FusionGroup) and len(step.members) == 4


def test_products_are_calls_between_loops():
    found = lowered(network, gradient=False)
    kinds = [step.value.op.name if isinstance(step, Call) else "loops" for step in found.fused.steps]
    assert kinds == ["matmul", "loops", "matmul", "loops"]


def test_different_shapes_are_different_loops():
    found = lowered(lambda x, w: (np.sin(x), np.sin(w)), gradient=False)
    assert len(found.fused.steps) == 2


def differences(u):
    """The gradient of a total variation: differences along both axes, cut to one shape."""
    def loss(u):
        down, right = u[1:, :] - u[:-1, :], u[:, 1:] - u[:, :-1]
        return np.sum(np.sqrt(down[:, :-1] ** 2 + right[:-1, :] ** 2 + 1e-3))
    return bw.grad(loss)(u)


def test_arrays_whose_extents_are_alike_by_chance_share_no_loop():
    """(n, m) and (m, n): one of them would be walked across its rows."""
    assert len(steps_of(lambda x: (np.sin(x[1:, :]), np.cos(x[:, 1:])), np.ones((9, 9)))) == 2
    assert len(steps_of(lambda x, y: (np.sin(x), np.cos(y)), X, X)) == 1


def test_large_transposes_go_through_no_others_beside_theirs():
    def turned(x, y):
        return np.ascontiguousarray(x.T), np.ascontiguousarray(y.T)

    small, large = np.ones((40, 30)), np.ones((500, 300))
    assert len(steps_of(turned, small, small)) == 1
    assert len(steps_of(turned, large, large)) == 2


def test_differences_are_taken_where_they_are_read():
    """Nothing of n**2 elements is stored but the two quotients, which the neighbours read."""
    u = np.random.default_rng(0).standard_normal((40, 50))
    found = lowered(differences, u, gradient=False)
    assert found.plan.arena_bytes <= 2 * u.nbytes + 64 * 64
    direction, step = np.cos(np.arange(u.size)).reshape(u.shape), 1e-6
    slope = (np.sum(bw.jit(differences)(u + step * direction) * direction) - np.sum(bw.jit(differences)(u - step * direction) * direction))
    product = np.sum(bw.jvp(bw.jit(differences), (u,), (direction,))[1] * direction)
    np.testing.assert_allclose(product, slope / (2 * step), rtol=1e-6)


def distances(x):
    """Two loops that need all differences: along rows, with the means of rows, and along columns."""
    d = x[:, None] - x[None, :]
    return np.sum((d - np.mean(d * d, axis=1, keepdims=True)) ** 3), np.sum((d - np.mean(d * d, axis=0, keepdims=True)) ** 4)


def test_what_is_made_of_much_smaller_arrays_is_not_stored(monkeypatch):
    x = np.linspace(-1, 1, 300)
    assert lowered(distances, x, gradient=False).plan.arena_bytes < 300 * 300 * 8
    numbers = bw.jit(distances)(x)
    monkeypatch.setattr(recomputation, "LEAST_EXPANDED", 1 << 60)
    assert lowered(distances, x, gradient=False).plan.arena_bytes >= 300 * 300 * 8
    for one, other in zip(numbers, distances(x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def centred(x):
    """Columns without their means, along columns and along rows: x is read there again, and the differences are never stored."""
    d = x - np.mean(x, axis=0)
    return np.max(np.abs(d), axis=0), np.mean(d * d, axis=1)


def test_what_one_stored_array_makes_is_not_stored(monkeypatch, rng):
    x = rng.standard_normal((300, 200))
    assert lowered(centred, x, gradient=False).plan.arena_bytes < x.nbytes
    numbers = bw.jit(centred)(x)
    monkeypatch.setattr(recomputation, "LEAST_EXPANDED", 1 << 60)
    assert lowered(centred, x, gradient=False).plan.arena_bytes >= x.nbytes
    for one, other in zip(numbers, centred(x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_parts_that_are_a_number_are_known_where_they_are_read(rng):
    def ends(x, y):
        z = x.copy()
        z[3:-3] = 0.0
        return np.cumsum(z * y)[::-1] * z

    x, y = rng.standard_normal((2, 300))
    assert "store %slice_update" not in bw.jit(ends).lower(x, y).as_text("loops")
    np.testing.assert_allclose(bw.jit(ends)(x, y), ends(x, y), rtol=1e-12)


def test_what_two_arrays_make_is_stored(rng):
    """Two loads in the place of one, in every loop that reads it, cost more than a store."""
    def function(x, y):
        d = x - y
        return np.max(np.abs(d), axis=0), np.mean(np.tanh(d - np.mean(d, axis=0)), axis=1)
    x, y = rng.standard_normal((2, 300, 200))
    assert lowered(function, x, y, gradient=False).plan.arena_bytes >= x.nbytes


def sweeps(function, *arguments):
    """The loop trees of a gradient that are no numbers."""
    return [step for step in lowered(function, *arguments).fused.steps if isinstance(step, FusionGroup) and step.extents]


def test_a_few_operations_are_done_again_at_shifted_places(monkeypatch, rng):
    def function(u, v):
        w = np.tanh(u)
        return np.diff(w * v * 0.5 * 2.5) ** 2

    u, v = rng.standard_normal((2, 40))
    stored = len(sweeps(function, u, v))
    result = bw.vjp(function, u, v)[1](np.ones(39))
    monkeypatch.setattr(recomputation, "LEAST_EXPANDED", 0)
    assert len(sweeps(function, u, v)) <= stored
    for found, expected in zip(bw.vjp(lambda u, v: function(u, v), u, v)[1](np.ones(39)), result, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_periodic_differences_are_one_sweep_each_way(monkeypatch, rng):
    """The adjoint of rolls is rolls; what they read at neighbours is done again."""
    def function(u, k):
        return np.sum((u + k * (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u)) ** 2)

    monkeypatch.setattr(recomputation, "LEAST_EXPANDED", 0)
    u, k = rng.standard_normal((2, 30, 30))
    assert len(sweeps(function, u, k)) == 2
    bw.check_grads(function, (u, k))


def test_residuals_are_written_into_their_stack_where_they_are_computed():
    """And not stored beside it, for a later loop to copy."""
    def function(x, y):
        for _ in range(40):
            x = np.log(np.sum(np.exp(x[:, None] * y), 1))
            x = np.log(np.sum(np.exp(x[:, None] - y), 0))
        return np.sum(x)

    text = bw.grad(function).as_text("loops", np.ones(60), np.ones((60, 60)))
    forward = [kernel for kernel in text.split("kernel ") if kernel.startswith("b0b.")]
    assert sum([kernel.count("out f64[60,60]") for kernel in forward]) == 0
    assert sum([kernel.count("inout f64[40,60,60]") for kernel in forward]) == 2


def test_long_loops_may_have_more_operations():
    def function(x):
        return functools.reduce(lambda y, _: y * x + 0.5, range(70), x)

    counts = [len(lowered(function, np.ones(extent), gradient=False).fused.steps) for extent in (200, 2000)]
    assert counts == [2, 1]


def test_what_is_written_to_later_is_not_read_again():
    def function(x):
        y = np.sin(x)
        d = y[:, None] * y[None, :]
        total = np.sum(np.exp(d), axis=0)
        np.add.at(y, np.array([1, 1, 4]), 1.0)
        return total, np.max(d, axis=1), y
    x = np.linspace(-1, 1, 200)
    for one, other in zip(bw.jit(function)(x), function(x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_rows_that_are_spread_do_not_turn_the_loops():
    """The scales of a mixture: 16 times 4 numbers, spread over all points, whose loop runs along memory."""
    def function(points, means, scales):
        d = (points[:, None, :] - means[None]) * np.exp(scales)[None]
        return np.sum(d * d, axis=2)
    points, means = np.ones((2000, 4)), np.ones((16, 4))
    assert steps_of(function, points, means, means) == [["exp"], ["subtract", "multiply", "multiply", "sum"]]

# ----- values over more axes than what they read
def spread(shape):
    """A value over `shape`, of one over all axes but the middle one, times one over all axes but the first."""
    def function(x, w):
        return np.cos(x * 2.0)[:, None, :] * w
    rows, middle, last = shape
    return function, np.linspace(0.0, 3.0, rows * last).reshape(rows, last), np.linspace(1.0, 2.0, middle * last).reshape(middle, last)


@pytest.mark.parametrize(("last", "axes"), [(32, [1]), (5, None)], ids=["vectors along rows", "short rows"])
def test_loops_over_a_new_middle_axis_run_along_memory(last, axes):
    """Where rows are long, dear values are vectors over them, and short ones are computed by themselves before."""
    function, x, w = spread((6, 4, last))
    found = lowered(function, x, w, gradient=False).fused.steps
    if axes is None:
        assert [[member.value.op.name for member in step.members] for step in found] == [["multiply", "cos"], ["multiply"]]
    else:
        [step] = found
        assert sorted(step.inner) == axes and step.extents == [6, 4, last]
    np.testing.assert_allclose(bw.jit(function)(x, w), function(x, w), rtol=1e-15)


@pytest.mark.parametrize(("extent", "loops"), [(2, 2), (100, 1)])
def test_work_before_short_rows_keeps_its_vectors(extent, loops):
    def function(x, w):
        return ((x * 2.0 - 1.0) * x + 0.5)[:, None] * w
    assert len(steps_of(function, np.ones(64), np.ones((64, extent)))) == loops
    assert len(steps_of(lambda x, w: (x * 2.0)[:, None] * w, np.ones(64), np.ones((64, extent)))) == 1


def test_loops_do_not_depend_on_which_slice_comes_first():
    """The cotangents of two columns, in either order: the first one is placed in zeros, the other added."""
    def rates(turned):
        def function(y, ct):
            a, b = y[:, 0], y[:, 1]
            first = -a * b * b + 2.0 * a if turned else 2.0 * a - a * b * b
            return np.sum(np.stack([first, b * a - 3.0 * b * b], 1) * ct)
        return bw.grad(function)
    y, ct = np.linspace(0.0, 1.0, 128).reshape(64, 2), np.linspace(1.0, 2.0, 128).reshape(64, 2)
    counts = [sum(len(ops) > 3 for ops in steps_of(rates(turned), y, ct)) for turned in (False, True)]
    assert counts[0] == counts[1]
    for turned in (False, True):
        for step in lowered(rates(turned), y, ct, gradient=False).fused.steps:
            assert step.inner is None                              # nothing is computed row by row
    np.testing.assert_allclose(rates(False)(y, ct), rates(True)(y, ct), rtol=1e-13)


@pytest.mark.parametrize("places", ["first", "last", "middle", "first and third", "second and last"])
@pytest.mark.parametrize("extent", [3, 17, 40])
def test_rows_spread_over_any_axes(places, extent):
    numbers = {"first": (0,), "last": (2,), "middle": (1,), "first and third": (0, 2), "second and last": (1, 3)}[places]

    def function(x, w):
        row = x * 2.0 - 1.0
        return np.expand_dims(row, numbers) * w + np.expand_dims(row * row, numbers)

    def total(x, w):
        return np.sum(np.sin(function(x, w)))
    x, w = np.linspace(-1.0, 1.0, 5 * extent).reshape(5, extent), np.full(np.expand_dims(np.ones((5, extent)), numbers).shape, 0.5)
    w = np.repeat(w, 4, axis=numbers[0])
    np.testing.assert_array_equal(bw.jit(function)(x, w), function(x, w))
    step = 1e-6
    for number, got in enumerate(bw.grad(total, argnums=(0, 1))(x, w)):
        arguments = [[x, w], [x, w]]
        for sign, row in zip((step, -step), arguments, strict=True):
            row[number] = row[number] + sign
        difference = (total(*arguments[0]) - total(*arguments[1])) / (2 * step)
        np.testing.assert_allclose(np.sum(got), difference, rtol=1e-6, atol=1e-8)


def test_a_value_goes_where_all_its_axes_are_before_it_spreads_a_row():
    def function(x, w):
        row = x * 2.0
        whole = w + 1.0
        return whole * row[:, None], row
    x, w = np.ones(5), np.ones((5, 7))
    assert [len(step.extents) for step in lowered(function, x, w, gradient=False).fused.steps] == [1, 2]


# ----- the order of loops
def channels_last(x, w):
    """What a convolution does around an activation: rows of a product, seen with the channels in front."""
    seen = np.transpose((x @ w).reshape(2, 6, 4), (0, 2, 1))
    return np.transpose(np.tanh(seen) * seen + 1.0, (0, 2, 1)).reshape(12, 4) @ w.T


@pytest.mark.parametrize("rows, columns, together", [(1000, 64, True), (3000, 64, False), (600, 800, True), (600, 1000, False)])
def test_tall_columns_are_gone_through_twice_by_loops_over_rows(rows, columns, together):
    """What comes after the sums of columns joins their loop only where a cache keeps the columns; else rows can be shared by threads."""
    def normalised(x):
        e = np.exp(x)
        return e / np.sum(e, axis=0)

    fused = lowered(normalised, np.ones((rows, columns)), gradient=False).fused
    step_of = {value.op.name: step for value, step in fused.step_of.items()}
    assert (step_of["sum"] is step_of["divide"]) == together
    np.testing.assert_allclose(bw.jit(normalised)(np.ones((rows, columns))), 1 / rows)


def test_what_runs_over_tall_columns_does_not_join_a_loop_over_rows():
    """Loops over 64 columns at a time would go from page to page: `exp(y)` is stored, and the rest goes along rows."""
    def function(x, y):
        return np.sum(np.tanh(x - np.exp(y)), axis=0)

    fused = lowered(function, np.ones((4096, 512)), np.ones(512), gradient=False).fused
    assert [(len(step.extents), step.inner) for step in fused.steps] == [(1, None), (2, None)]


def test_rows_of_rings_are_read_where_they_lie():
    """The derivative of a loop of unknown length reads residuals, also neighbours, at positions that are data, and copies none of them."""
    def function(x):
        while np.sum(x) > 1.0:
            x = 0.9 * x + 0.01 * np.roll(x, 1) * x * np.sin(np.roll(x, -1))
        return np.sum(x)

    text = bw.grad(function).as_text("loops", np.ones(300))
    back = [kernel for kernel in text.split("kernel ") if kernel.startswith("b1b.b1b.")]
    assert sum("remainder, " in kernel for kernel in back) > 1
    assert not any("store %gather" in kernel for kernel in back)


def test_rows_of_what_is_written_to_are_copied_first(rng):
    def function(x, table, k):
        for _ in range(3):
            row = table[k]
            table[k + 1] = row + x
            x = x * row
            k = (k + 1) % 4
        return x, table

    arguments = rng.standard_normal(50), rng.standard_normal((6, 50)), np.array(2)
    expected = function(arguments[0], arguments[1].copy(), arguments[2])
    for found, wanted in zip(bw.jit(function, mutates=False)(*arguments), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_conditions_are_found_again_where_what_they_compare_is():
    """Storing a condition as bytes and loading it again costs more than comparing what a loop loads anyway."""
    def function(x, y):
        big = x > y
        total = np.cumsum(np.where(big, x, 0.0))
        return np.where(big & (x < 3.0), x * total, y)

    found = lowered(function, np.ones(5000), np.zeros(5000), gradient=False)
    assert sum(isinstance(step, FusionGroup) for step in found.fused.steps) == 2
    assert not any(value.dtype.kind == "b" for value in found.fused.stored)


@pytest.mark.parametrize("rows, stored", [(1000, True), (4096, False)])
def test_functions_of_arrays_that_no_cache_holds_are_computed_again(rows, stored):
    """exp(x - m) of 20 MB takes less time than storing and loading it; of 5 MB it does not."""
    def shares(x, m):
        e = np.exp(x - m)
        return e * np.sqrt(np.sum(e, axis=0))

    plan = lowered(shares, np.ones((rows, 600)), np.ones(600), gradient=False).plan
    assert (plan.arena_bytes >= rows * 600 * 8) == stored


def test_loops_run_in_the_order_of_memory():
    x, w = np.linspace(0.0, 1.0, 60).reshape(12, 5), np.linspace(-1.0, 1.0, 20).reshape(5, 4)
    [step] = [step for step in lowered(channels_last, x, w, gradient=False).fused.steps if isinstance(step, FusionGroup)]
    assert step.extents == [2, 6, 4]                           # that of tanh is (2, 4, 6)
    np.testing.assert_allclose(bw.jit(channels_last)(x, w), channels_last(x, w), rtol=1e-13)


def test_loops_keep_their_order_where_another_is_no_better():
    both = lowered(lambda x: np.sin(x) + x.T, np.ones((6, 6)), gradient=False)
    transposed = lowered(lambda x: np.sin(x).T, np.ones((6, 8)), gradient=False)
    assert [step.extents for step in (*both.fused.steps, *transposed.fused.steps)] == [[6, 6], [6, 8]]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_values_and_updates_in_any_order(order):
    back = tuple(np.argsort(order))

    def function(x, y):
        z = np.transpose(np.sqrt(x), order) * 2.0
        z[1:, :, ::2] += np.transpose(y, order)[1:, :, ::2]
        return np.transpose(z, back) + np.transpose(np.cos(np.transpose(y, order)), back)
    x, y = np.linspace(1.0, 2.0, 60).reshape(3, 4, 5), np.linspace(0.0, 3.0, 60).reshape(3, 4, 5)
    np.testing.assert_allclose(bw.jit(function)(x, y), function(x, y), rtol=1e-14)


def test_what_fusion_noted_goes_with_it():
    """A circle of objects would stay until the collector finds it: a large part of all that compiling a large graph makes."""
    def function(x):
        return np.sum(np.tanh(x) * x), np.cumsum(x)
    fusion = _Fusion(trace(function, (X,)).graph, None, ())
    fusion.run()
    noted = weakref.ref(fusion)
    del fusion
    assert noted() is None


def residual_pairs(x, w):
    """Both loops have y; m and n are quick to have again from it, which a root is not, nor what is read elsewhere."""
    y = x * w + 1.0
    m = np.maximum(y, 0.0)
    n, root_of, r = m * m, np.sqrt(y * y + 1.0), m[::-1]
    total = np.cumsum(n * root_of, axis=0)
    return total * y + m * n + root_of + r


def test_what_readers_can_have_from_what_they_load_is_not_stored(rng):
    args = rng.standard_normal((6, 8)), rng.standard_normal((6, 8))
    found = lowered(residual_pairs, *args, gradient=False)
    names = {value.op.name for value in found.fused.stored}
    assert "sqrt" in names and sum(value.op is ops.maximum for value in found.fused.stored) == 1
    last = found.fused.steps[-1]
    assert next(member.value.op.name for member in last.members) == "multiply"
    np.testing.assert_array_equal(bw.jit(residual_pairs)(*args), residual_pairs(*args))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_few_operations_in_a_row_are_computed_again(count, rng):
    def program(x):
        chain = [x * 3.0]
        for _ in range(count):
            chain.append(np.maximum(chain[-1] - 0.25, -1.0))
        total = np.cumsum(functools.reduce(np.add, chain))
        return functools.reduce(np.add, chain, total)

    x = rng.standard_normal(20)
    np.testing.assert_allclose(bw.jit(program)(x), program(x), rtol=1e-15)
    [*_, last] = lowered(program, x, gradient=False).fused.steps
    again = [member.value for member in last.members if member.value.op is ops.maximum]
    assert len(again) == (count + 1) // 2                          # each by two operations, from one that is loaded


def slopes(u, w):
    """What lies between is computed again at shifted elements of something else."""
    d = u[1:] - u[:-1]
    a = d[1:] + d[:-1]
    m = a * a * 0.5
    total = np.cumsum(np.sqrt(m * m + 1.0), axis=0)
    return total * m + a * (d[1:] - 0.1)


def views(u, w):
    """What is read through another shape, or turned, has memory."""
    m = u * w
    n = m.reshape(-1) * 0.5
    total = np.cumsum(np.sqrt(m * m + 1.0), axis=0)
    return total * m + n.reshape(u.shape) + (m * m)[::-1] + u


def neighbours(u, w):
    """A loop computes y again where it is, not beside it."""
    y = u + w
    beside = (y[1:] - 0.1) * y[:-1]
    total = np.cumsum(np.sqrt(y * y + 1.0), axis=0)
    last = total * y * u * w
    return last[1:] + beside * total[1:]


@pytest.mark.parametrize("program", [slopes, views, neighbours])
def test_shifts_and_views_of_what_is_computed_again(program, rng):
    args = rng.standard_normal((14, 14)), rng.standard_normal((14, 14))
    np.testing.assert_allclose(bw.jit(program)(*args), program(*args), rtol=1e-14)
    bw.check_grads(lambda u, w: np.sum(program(u, w)), args, modes=("rev",), order=1)


def test_what_has_memory_anyway_is_loaded_instead(rng):
    """The last loop loads y, which is in memory to be read backwards, and has z from it."""
    def program(x):
        y = np.sin(x)
        z = np.maximum(y, 0.1)
        beside = y[::-1] * z
        return np.cumsum(beside, axis=0) * z

    x = rng.standard_normal((20, 30))
    found = lowered(program, x, gradient=False)
    last = found.fused.steps[-1]
    assert {value.op.name for value in last.loads} == {"sin", "cumsum"}
    np.testing.assert_allclose(bw.jit(program)(x), program(x), rtol=1e-13)
