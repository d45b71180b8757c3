"""Lists with elements that are there or not as data decides: appended in branches, and in loops that are left early."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import tree
from bwcompiler.errors import TracerBoolError, TracerError
from bwcompiler.frontend.tracing.trace import trace
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9, 0.35, 1.7, -0.6, 0.45, 0.15, -0.25]) + 0.0137


def in_a_branch(x):
    kept = []
    for v in x:
        if v > 0.25:
            kept.append(v * v)
    return sum(kept) + len(kept)


def on_both_sides(x):
    kept = [x[0]]
    for k in range(5):
        if x[k] > 0.25:
            kept.append(x[k])
        else:
            kept.append(-x[k] * 2)
    return kept[-1] + kept[2] * len(kept)


def on_both_sides_of_a_captured_loop(x):
    kept = []
    for k in range(12):
        if x[k] > 0.25:
            kept.append(x[k] ** 2)
        else:
            kept.append(0.5)
    return np.sum(np.array(kept) * np.arange(12.0))


def in_branches_of_branches(x):
    kept = [x[0]]
    for k in range(5):
        if x[k] > 0.25:
            kept.append(x[k])
            if x[k] > 0.8:
                kept.append(x[k] * 3)
        elif x[k] < -0.5:
            kept.append(1.0)
    return kept[-1] + len(kept) * np.mean(kept) + max(kept) - min(kept) + np.array(kept).sum() + (1.0 if 1.0 in kept else 0.0)


def tuples_and_tests(x):
    kept = []
    for v in x:
        if abs(v) > 0.25:
            kept.append((v, v * 2))
    total = 0.0
    for a, b in kept:
        total += a * b
        if b > 1:
            total *= 2
    return total + (1.0 if kept else x[0])


def of_arrays(x):
    basis, a = [], np.outer(x, np.arange(12.0)) + np.eye(12)
    for k in range(5):
        w = a[k]
        for b in basis:
            w = w - (b @ a[k]) * b
        if np.linalg.norm(w) > 0.9:
            basis.append(w / np.linalg.norm(w))
    total = 0.0
    for b in basis:
        total += b[0] ** 2 + b[5]
    return total + len(basis)


def read_while_it_grows(x):
    kept = [0.1]
    for k in range(12):
        if x[k] > kept[-1]:
            kept.append(x[k] * 0.9)
    return kept[-1] * len(kept)


def first_and_last(x):
    found, t = [], x[0]
    for _ in range(20):
        t = t * 1.1 + 0.01
        if 1 < t < 1.5:
            found.append(t)
    return (found[0] * found[-1] if len(found) > 0 else x[1]) + (max(found) if found else 1.0)


def until_it_converges(x):
    errors, t = [], x[0] ** 2 + 0.5
    for _ in range(40):
        new = 0.5 * (t + (2 + x[1]) / t)
        errors.append(abs(new - t))
        t = new
        if errors[-1] < 1e-6:
            break
    return t + len(errors) + errors[-1] + sum(errors) + max(errors)


def a_history_of_arrays(x):
    history, y = [x * 1.0], x * 1.0
    for _ in range(30):
        y = y - 0.3 * (y - x[::-1])
        if np.abs(y - x[::-1]).max() < 0.05:
            break
        history.append(y)
    return history[-1].sum() + history[1][0] + len(history)


def left_and_continued(x):
    kept = []
    for k in range(20):
        if x[k % 12] > 1.2:
            break
        if x[k % 12] < 0:
            continue
        kept.append((k, x[k % 12]))
    total = 0.0
    for k, v in kept:
        total += k * v
    return total + (kept[-1][1] if kept else x[3])


def few_iterations(x):
    kept = []
    for k in range(4):
        if x[k] > 1.2:
            break
        kept.append(x[k])
    return np.mean(kept) * len(kept) if len(kept) > 0 else x[5]


def returned_from_helpers(x):
    def above(x, level):
        found = []
        for v in x[:6]:
            if v > level:
                found.append(v)
        return found

    return sum(above(x, 0.25) + above(-x, 0.3), 10.0) + len(above(x, 0.6))


def a_first_one_from_a_helper(x):
    def above(x, level):
        found = []
        for v in x[:6]:
            if v > level:
                found.append(v)
        return found

    return x[0] * len(above(x, 0.25))


def comprehensions(x):
    large = [v for v in x if v > 0.25]
    pairs = [(k, v * v) for k, v in enumerate(x[:6]) if v > 0.25 and k != 2 if v < 1.0]
    table = dict(zip("abcd", x, strict=False))
    named = [name for name, value in sorted(table.items()) if name != "b"]
    doubled = [2 * v for v in large]
    total = sum(v ** 3 for v in x if not v > 1.0) + sum(table[name] for name in named) + sum(k * v for k, v in pairs)
    return total + max(v for v in x if v < 0.5) + len(doubled) * doubled[-1] + sum([a * b for a in x[:2] for b in x[2:4]])


def comprehensions_of_own_functions(x):
    def root(v):
        if v < 0:
            raise ValueError("negative")
        return np.sqrt(v)

    roots = [root(v) for v in x if v > 0.1]
    basis = []
    for k in range(4):
        w = x[k:k + 3] - sum((b * (b @ x[k:k + 3]) for b in basis), np.zeros(3))
        if w @ w > 0.5:
            basis.append(w / np.sqrt(w @ w))
    return sum(roots) + len(roots) + sum(b[0] for b in basis)


PROGRAMS = [comprehensions, comprehensions_of_own_functions, in_a_branch, on_both_sides, on_both_sides_of_a_captured_loop, in_branches_of_branches, tuples_and_tests, of_arrays,
            read_while_it_grows, first_and_last, until_it_converges, a_history_of_arrays, left_and_continued, few_iterations,
            returned_from_helpers, a_first_one_from_a_helper]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, X, X[::-1].copy(), 0.5 * X + 1, -X)


def test_what_is_not_there_raises():
    def last(x):
        kept = []
        for v in x[:3]:
            if v > 1.0:
                kept.append(v)
        return kept[-1]

    def largest(x):
        kept = []
        for v in x[:3]:
            if v > 1.0:
                kept.append(v)
        return max(kept)

    for program, kind in ((last, IndexError), (largest, ValueError)):
        assert bw.jit(program)(X) == program(X)
        with pytest.raises(kind):
            bw.jit(program)(0.1 * X)


def refused(use):
    def program(x):
        kept = [x[0]]
        for v in x[1:4]:
            if v > 0:
                kept.append(v)
        return use(kept)
    return program


USES = {
    "set": lambda kept: len({2 * v for v in kept}),
    "texts": lambda kept: sum([a for a, _ in zip(kept, "abcd", strict=False)]), "step": lambda kept: sum(kept[::len(kept)]),
    "unpacked": lambda kept: (lambda a, b, c, d: a + b)(*kept),
    "stacked": lambda kept: np.array(kept) @ np.ones(2),
    "text": lambda kept: float(f"{kept[1:]}"), "order": lambda kept: kept < [1.0, 2.0, 3.0, 4.0],
}


@pytest.mark.parametrize("use", USES)
def test_what_would_count_or_move_elements_is_refused(use):
    with pytest.raises((TracerError, TracerBoolError), match="number of elements|traced"):
        bw.jit(refused(USES[use]))(X)


@pytest.mark.parametrize("use", [lambda kept: kept.pop(1) + sum(kept), lambda kept: (kept.insert(0, 1.0), kept.insert(2, 3.0), kept)[2]])
def test_elements_in_the_middle(use):
    compiled = bw.jit(refused(use))
    for x in (X, np.abs(X), X[::-1].copy()):
        np.testing.assert_allclose(compiled(x), refused(use)(x))


def test_lists_are_returned_with_the_elements_that_are_there():
    def found(x):
        kept, places = [x[0]], []
        for k, v in enumerate(x):
            if v > 0:
                kept.append(2 * v)
                places.append((k, v))
        return kept, {"places": places, "all": np.array(kept)}, np.size(kept), np.sort(kept)[0], [v for v in x if v > 1]
    compiled = bw.jit(found)
    for x in (X, -X, 0 * X):
        for one, other in zip(tree.leaves(compiled(x)), tree.leaves(found(x)), strict=True):
            np.testing.assert_array_equal(one, other)
        assert tree.structure(compiled(x)) == tree.structure(found(x))


@pytest.mark.parametrize("steps", [7, 40])
def test_elements_that_are_appended_in_known_iterations(steps, rng):
    def recorded(x):
        kept, late = [], []
        for k in range(steps):
            x = x * 0.9 + 0.1 * np.sin(x)
            if k % 5 == 0 or k == steps - 1:
                kept.append(x.sum())
            if not k < 3 and (k + 1) % 4 == 0:
                late.append((k, x))
        return np.array(kept) @ np.arange(1.0, len(kept) + 1), kept[-1], sum([k * np.sum(v) for k, v in late])
    x = rng.standard_normal(3)
    np.testing.assert_allclose(bw.jit(recorded)(x), recorded(x), rtol=1e-12)
    numeric = [(recorded(x + 1e-6 * e)[0] - recorded(x - 1e-6 * e)[0]) / 2e-6 for e in np.eye(3)]
    np.testing.assert_allclose(bw.grad(lambda x: recorded(x)[0])(x), numeric, rtol=1e-6)


def test_functions_in_branches_are_refused_with_what_to_write():
    def of_functions(x):
        rows = []
        if x[0] > 0:
            rows.append(np.sin)
        return len(rows)

    with pytest.raises(TracerBoolError, match="append numbers, arrays or tuples"):
        bw.jit(of_functions)(X)


def test_elements_that_are_assigned_and_deleted():
    def filled(x):
        kept = [x[0]]
        for v in x[1:4]:
            if v > 0:
                kept.append(v)
        return kept

    def assigned(x):
        kept = filled(x)
        kept[1] = 0.0
        kept[-1] += x[0]
        return sum(kept) + 10 * kept[0]

    def deleted(x):
        kept = filled(x)
        del kept[1]
        return sum(kept) + 10 * len(kept)

    def part_assigned(x):
        kept = filled(x)
        kept[1:2] = [x[0], x[1]]
        return sum(kept)

    def part_deleted(x):
        kept = filled(x)
        del kept[1:]
        return sum(kept)

    for program in (assigned, deleted):
        compiled = bw.jit(program)
        for x in (np.array([1.0, 2.0, -3.0, 4.0]), np.array([1.0, -2.0, 3.0, -4.0]), np.array([1.0, 2.0, 3.0, 4.0])):
            np.testing.assert_allclose(compiled(x), program(x))
        with pytest.raises(IndexError, match="list assignment index out of range"):
            compiled(np.array([1.0, -2.0, -3.0, -4.0]))
    for program in (part_assigned, part_deleted):
        with pytest.raises(TracerError, match="of a list that data fill|from a list that data fill"):
            bw.jit(program)(X)


def test_an_array_that_was_appended_in_a_loop_that_is_left_is_not_written_to():
    def program(x):
        history, y = [], x * 1.0
        for _ in range(30):
            y = y * 0.9
            history.append(y)
            if y[2] < 0.5:
                break
        y += 1
        return history[-1].sum()

    with pytest.raises(ValueError, match="was appended to a list in a loop that may be left early"):
        bw.jit(program)(X)


def test_what_a_loop_has_appended_is_arrays():
    """Length, sum, extrema, ends and loops over it do not grow with the number of iterations."""
    def program(x, n):
        kept, t = [], x[0]
        for k in range(n):
            t = 0.9 * t + np.sin(x[1] * k)
            if t > 0.2:
                kept.append(t)
        total = 0.0
        for v in kept:
            total += v ** 2
        return total + len(kept) + sum(kept) + max(kept) - min(kept) + kept[-1] + np.mean(kept)

    def early(x, n):
        kept, t = [x[2]], x[0]
        for k in range(n):
            t = 0.9 * t + np.sin(x[1] * k)
            kept.append(t)
            if t > 2.0:
                break
        return kept[-1] * kept[0] + kept[2] + len(kept) + sum(kept)

    for function in (program, early):
        compiled = bw.value_and_grad(function)
        sizes = []
        for n in (40, 80):
            value, gradient = compiled(X, n)
            assert value == pytest.approx(function(X, n), rel=1e-12)
            e = 1e-6 * np.eye(12)[1]
            assert gradient[1] == pytest.approx((function(X + e, n) - function(X - e, n)) / 2e-6, rel=1e-5)
            sizes.append(len(trace(lambda x, n=n, function=function: function(x, n), (X,)).graph.body))
        assert sizes[0] == sizes[1]


def _mean_of_some(x):
    kept, total = x[x > 0.2], 0.0
    if len(kept) > 2:
        total = kept.mean()
    for k in range(10):
        total += kept.sum() * k if x[k] > 0 else np.max(kept)
    return total


def _centres(x):
    points, centres = x.reshape(6, 2), x[:4].reshape(2, 2) * 1.0
    for _ in range(10):
        labels = np.sum((points[:, None] - centres) ** 2, -1).argmin(1)
        for j in range(2):
            chosen = points[labels == j]
            if len(chosen):
                centres[j] = chosen.mean(axis=0)
    return np.sum(centres * [[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize("program", [_mean_of_some, _centres], ids=lambda program: program.__name__)
def test_selections_are_seen_in_branches_and_loops(program) -> None:
    as_python(program, X)


def accepted_steps(x):
    """What is appended may be the array from before, as data say."""
    y, t, h = np.array([x, 1.0]), 0.0, 0.1
    times, states, status = [t], [y], "finished"
    steps = 0
    while t < 6.0:
        steps += 1
        if steps > 400:
            status = "too many"
            break
        h = min(h, 6.0 - t)
        following = y + h * np.sin(y)
        if np.sqrt(np.mean(following ** 2)) <= 1e9:
            t, y = t + h, following
            times.append(t)
            states.append(y)
        h = h * 1.01
    if status != "finished":
        return 0.0
    return np.sum(np.array(times)) + np.sum(np.array(states)[:, 1] ** 2)


def test_arrays_that_data_append_are_rows_of_one() -> None:
    compiled = bw.value_and_grad(accepted_steps)
    value, slope = compiled(0.7)
    assert value == pytest.approx(accepted_steps(0.7), rel=1e-12)
    assert slope == pytest.approx((accepted_steps(0.7 + 1e-6) - accepted_steps(0.7 - 1e-6)) / 2e-6, rel=1e-6)
    assert len(bw.jit(accepted_steps).lower(0.7).lowered().graph) < 300


def written_behind(x):
    y = np.array([x, 1.0])
    first, kept, k = y, [], 0
    while k < 20:
        if k * x < 3.0:
            y = y * 1.1
        kept.append(y)
        k += 1
        if y[0] > 2.0:
            break
    first[0] = 5.0
    return np.sum(np.array(kept))


def test_arrays_that_were_appended_are_not_written_to_behind_the_loop() -> None:
    with pytest.raises(bw.errors.UnsupportedError, match="an array is assigned to that was appended to a list"):
        bw.jit(written_behind)(0.7)


def places_of_elements(x):
    kept = []
    for v in x:
        if v > 0:
            kept.append(v * v)
    kept.append(7.0)
    return kept.index(max(kept)) + 10.0 * kept.count(7.0) + kept[-2] * x[0]


def test_elements_are_looked_for():
    for x in (np.array([0.5, -1.0, 2.0, 1.0]), np.array([3.0, -1.0, -2.0, 1.0])):
        assert bw.jit(places_of_elements)(x) == pytest.approx(places_of_elements(x), rel=1e-13)
        bw.check_grads(places_of_elements, (x,))
    with pytest.raises(ValueError, match="x not in list"):
        bw.jit(lambda x: [v for v in x if v > 0].index(17.0))(np.array([1.0, -1.0]))


def test_what_is_between_two_comparisons_may_be_a_product():
    def clipped(x, m):
        y = x.copy()
        if -1.0 < x[::-1] @ (m @ x) < 1.0:
            y[0] = 2.0
        return y

    for x in (np.array([0.1, 0.2]), np.array([3.0, 4.0])):
        np.testing.assert_array_equal(bw.jit(clipped)(x, np.eye(2)), clipped(x, np.eye(2)))
