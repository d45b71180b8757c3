"""Arrays of which data decides what other names they have: a write by one name that another one shows is never lost."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import BwError, UnsupportedError
from tests.unit.frontend.comparing import as_python

X = np.array([1.0, 2.0, 3.0])


def after_a_branch(x):
    a, b = x * 1.0, x * 2.0
    y = b
    if x[0] > 0:
        y = a
    a += 1
    return y.sum()


def of_an_expression(x):
    a = x * 1.0
    y = a if x[0] > 0 else x * 3
    a[0] = 5.0
    return y.sum()


def through_a_view(x):
    a = x * 1.0
    y = a[1:] if x[0] > 0 else x[:2]
    a[2] += x[1]
    return y[1]


def in_an_unrolled_loop(x):
    a, best, cost = x * 1.0, x * 0.0, 10.0
    for _ in range(4):
        now = np.sum((a - 2) ** 2)
        if now < cost:
            cost, best = now, a
        a -= 0.2 * (a - 2)
    return best.sum()


def in_a_loop(x):
    a, best, cost = x * 1.0, x * 0.0, 10.0
    for _ in range(12):
        now = np.sum((a - 2) ** 2)
        if now < cost:
            cost, best = now, a
        a -= 0.2 * (a - 2)
    return best.sum()


def after_a_loop_that_may_not_run(x):
    a, y, t = x * 1.0, x * 0, x[0]
    while t < 5:
        y = a
        t = t + 1
    a += 1
    return y.sum()


def of_a_new_array_of_the_last_iteration(x):
    a, best = x * 1.0, x * 0.0
    for _ in range(12):
        a = a * 1.1
        if a[0] < 3.0:
            best = a
    a += 1
    return best.sum()


def read_in_a_later_loop(x):
    a, total = x * 1.0, 0.0
    y = a if x[0] > 0 else x * 3
    for _ in range(12):
        total += y.sum()
        a += 1
    return total


def in_a_container(x):
    a = x * 1.0
    state = {"best": x * 0}
    if x[0] > 0:
        state["best"] = a
    a *= 2
    return state["best"].sum()


SEEN = [after_a_branch, of_an_expression, through_a_view, in_an_unrolled_loop, in_a_loop, after_a_loop_that_may_not_run,
           of_a_new_array_of_the_last_iteration, read_in_a_later_loop, in_a_container]


@pytest.mark.parametrize("program", SEEN, ids=lambda program: program.__name__)
def test_what_another_name_shows_is_as_in_python_or_refused(program):
    for x in (X, -X):
        try:
            found = bw.jit(program)(x)
        except UnsupportedError as error:
            assert "may be another name of an array" in str(error)
        else:
            assert found == pytest.approx(program(x), rel=1e-13)


def a_copy(x):
    a, best, cost = x * 1.0, x * 0.0, 10.0
    for _ in range(12):
        now = np.sum((a - 2) ** 2)
        if now < cost:
            cost, best = now, a.copy()
        a -= 0.2 * (a - 2)
    return best.sum()


def new_arrays(x):
    a, best, cost = x * 1.0, x * 0.0, 10.0
    while cost > 1e-3 and np.sum(np.abs(a)) < 100:
        now = np.sum((a - 2) ** 2)
        if now < cost:
            cost, best = now, a
        a = a - 0.2 * (a - 2)
    return best.sum() + a.sum()


def not_read_any_more(x):
    a, b = x * 1.0, x * 2.0
    y = a if x[0] > 0 else b
    total = y.sum()
    a += total
    b -= total
    return a.sum() * b.sum()


def written_before(x):
    a, b = x * 1.0, x * 2.0
    a += 1
    y = a if x[0] > 0 else b
    return y.sum() + a.sum()


def always_the_same(x):
    a, y = x * 1.0, x * 0
    for _ in range(10):
        y = a
    a += 1
    return y.sum()


def written_to_after_the_loop(x):
    y, t = x * 1.0, x[0]
    while t < 2.5:
        y = y * 2
        t = t + 1
    y[0] = 1.0
    y += 1
    return y.sum()


def of_rows(x):
    a, best = np.outer(x, x), None
    for k in range(3):
        row = a[k]
        if best is None or row.sum() > best.sum():
            best = row
    return best @ x


def one_of_many_inside_of_a_branch(x):
    """As many ways from one of them to another as there are orders of those in between."""
    arrays = [x * k for k in range(10)]
    a = arrays[0]
    if x[0] > -2:
        b = arrays[0] if x[1] > 0 else arrays[1]
        c = b if x[2] > 1 else arrays[2]
        d = c if x[0] > 0 else arrays[3]
        e = d if x[1] > 2 else arrays[4]
        f = e if x[2] > 0 else arrays[5]
        g = f if x[0] > 1 else arrays[6]
        h = g if x[1] < 0 else arrays[7]
        k = h if x[2] < 0 else arrays[8]
        a = k if x[0] < 0 else arrays[9]
    a[0] = 7.0
    return a @ x + sum([np.sum(one * one) for one in arrays])


RIGHT = [one_of_many_inside_of_a_branch, a_copy, new_arrays, not_read_any_more, written_before, always_the_same, written_to_after_the_loop, of_rows]


@pytest.mark.parametrize("program", RIGHT, ids=lambda program: program.__name__)
def test_what_nobody_can_see_is_as_in_python(program):
    for x in (X, -X):
        assert bw.jit(program)(x) == pytest.approx(program(x), rel=1e-13)
        difference = [(program(x + e) - program(x - e)) / 2e-6 for e in 1e-6 * np.eye(3)]
        np.testing.assert_allclose(bw.grad(program)(x), difference, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("bound", [lambda k, y: k > 2, lambda k, y: k > y], ids=["by the index", "by data"])
def test_what_a_loop_bound_last_may_be_another_variable_after_it(bound) -> None:
    """p was not changed once, where `kept += 4` changes it."""
    def program(x, y, is_written):
        kept = np.ones(2)
        for k in range(9):
            p = np.array([x * k, y + k])
            if bound(k, y):
                kept = p
        if is_written:
            kept += 4.0
        return np.sum(kept) + 7 * np.sum(p)

    for is_written in (False, True):
        np.testing.assert_allclose(bw.jit(program)(0.3, 0.4, is_written), program(0.3, 0.4, is_written))


def test_an_array_from_before_a_loop_that_it_may_have_given_a_second_name() -> None:
    """What the name gave stayed as it was, where A is written to after the loop."""
    def program(x, is_written):
        first, kept = np.array([x, 2 * x]), np.ones(2)
        for k in range(9):
            if x * k > 0.2:
                kept = first
        if is_written:
            first += 10.0
        return np.sum(kept) + np.sum(first)

    for x in (0.3, -0.3):
        np.testing.assert_allclose(bw.jit(program)(x, False), program(x, False))
    with pytest.raises(UnsupportedError, match="kept may be another name of an array"):
        bw.jit(program)(0.3, True)


def _loss(x):
    return x[0] ** 2 + np.exp(x[1]) - x[1] + (x[0] * x[1]) ** 2


def _slope(x):
    return np.array([2 * x[0] + 2 * x[0] * x[1] ** 2, np.exp(x[1]) - 1 + 2 * x[1] * x[0] ** 2])


def _backtracking(x, p, g):
    alpha = 1.0
    while _loss(x + alpha * p) > _loss(x) + 1e-4 * alpha * (g @ p):
        alpha *= 0.5
        if alpha < 1e-10:
            return None
    return alpha


def test_links_to_arrays_of_a_side_that_has_been_traced() -> None:
    """H may be one of several arrays, in sides inside of the side that a return makes of the rest of an iteration."""
    def quasi_newton(x):
        x, H, g = np.array(x), np.eye(2), _slope(x)
        for _ in range(15):
            if np.linalg.norm(g) < 1e-5:
                return np.sum(x) + np.sum(H)
            p = -H @ g
            if p @ g >= 0:
                H, p = np.eye(2), -g
            alpha = _backtracking(x, p, g)
            if alpha is None:
                return 0.0
            s = alpha * p
            new = _slope(x + s)
            y = new - g
            if y @ s > 1e-12:
                rho = 1 / (y @ s)
                V = np.eye(2) - rho * np.outer(s, y)
                H = V @ H @ V.T + rho * np.outer(s, s)
            x, g = x + s, new
        return np.sum(x)

    x = np.array([0.7, 0.4])
    np.testing.assert_allclose(bw.jit(quasi_newton)(x), quasi_newton(x), rtol=1e-9)
    assert "unrolled" not in bw.jit(quasi_newton).explain(x)


def one_from_outside(x):
    a = y = x * 1.0
    z = np.cos(x)
    for j in range(9):
        if x[0] * j > 5:
            a = z
    y[0] = 2.0
    return np.sum(a) + np.sum(y)


def two_from_outside(x):
    a = b = y = x * 1.0
    z = np.cos(x)
    for j in range(9):
        if x[0] * j > 5:
            a = z * j
        if x[1] * j > 3:
            b = z
    y[0] = 2.0
    return np.sum(a) + np.sum(b) * 3


def one_from_outside_that_is_written(x):
    a = y = x * 1.0
    z = np.cos(x)
    for j in range(9):
        if x[0] * j > 2:
            a = z
    z[1] = 2.0
    return np.sum(a) + np.sum(y)


def elements_of_a_list_by_places_that_repeat(x):
    y, z = x * 1.0, np.cos(x)
    kept = [y] * 12
    for j in range(9):
        kept[(2 * j) % 12] = z * j
    y[0] = 2.0
    return sum(np.sum(v) for v in kept)


def one_from_outside_that_the_loop_writes(x):
    y, kept = x * 1.0, np.sin(x)
    for k in range(12):
        y[0] *= 1.01
        if x[0] * k > 2.0:
            kept = y
    return np.sum(kept) + np.sum(y)


@pytest.mark.parametrize("program", [one_from_outside_that_the_loop_writes, one_from_outside, two_from_outside, one_from_outside_that_is_written,
                                     elements_of_a_list_by_places_that_repeat], ids=lambda program: program.__name__)
def test_names_of_arrays_from_outside_that_a_loop_gives_as_data_decide(program):
    for x in (np.array([0.31, 0.52, 0.73]), np.array([0.91, 0.32, 0.73])):
        np.testing.assert_allclose(bw.jit(program)(x), program(x), rtol=1e-13)


def simplex(x):
    """Arrays put in an order that is data, by a comprehension that is one loop: nobody writes to them."""
    points = [x.copy()]
    for i in range(3):
        point = np.array(x)
        point[i] += 0.3
        points.append(point)
    values = [np.sum((point - 1.1) ** 2 * np.arange(1.0, 4.0)) for point in points]
    for _ in range(25):
        order = sorted(range(4), key=lambda i: values[i])
        points = [points[i] for i in order]
        values = [values[i] for i in order]
        if abs(values[-1] - values[0]) < 1e-9:
            break
        centre = sum(points[:-1]) / 3
        tried = centre + (centre - points[-1])
        found = np.sum((tried - 1.1) ** 2 * np.arange(1.0, 4.0))
        if found < values[-2]:
            points[-1], values[-1] = tried, found
        else:
            for i in range(1, 4):
                points[i] = points[0] + 0.5 * (points[i] - points[0])
                values[i] = np.sum((points[i] - 1.1) ** 2 * np.arange(1.0, 4.0))
    return values[0] + np.sum(points[0] * points[1])


def test_arrays_in_an_order_that_is_data():
    as_python(simplex, np.array([0.3, 0.5, 0.9]), np.array([2.3, 1.5, -0.9]))


def test_arrays_in_an_order_that_is_data_and_written_to():
    def written(x):
        rows = [x * 1.0, x * 2.0, x * x]
        sums = [np.sum(row * np.arange(3.0)) for row in rows]
        chosen = [rows[i] for i in sorted(range(3), key=lambda i: sums[i])]
        rows[0] += 1.0
        return np.sum(chosen[0] * chosen[1])

    with pytest.raises(UnsupportedError, match="may be another name of an array that was assigned to"):
        bw.jit(written)(np.array([0.3, 0.5, 0.9]))


def chosen_before(x):
    """The array that was chosen before the loop is one that each iteration writes to."""
    a, b, total = x * 1.0, x * 2.0, 0.0
    chosen = [a, b][int(x[1] > 0)]
    for _ in range(20):
        total += np.sum(chosen)
        a[1] += 0.1
        b[0] += 1.0
    return total


def chosen_before_and_rebound(x):
    a, b, total = x * 1.0, x * 2.0, 0.0
    chosen = [a, b][int(x[1] > 5)]
    for _ in range(20):
        total += np.sum(chosen)
        a[1] += 0.1
        a = a * 1.0
    return total


def chosen_before_and_tested(x):
    a, b, count = x * 1.0, x * 2.0, 0.0
    chosen = [a, b][int(x[1] > 5)]
    while np.sum(chosen) < 30 + x[0]:
        a[1] += 1.1
        b[0] += 1.0
        count += x[0]
    return count


@pytest.mark.parametrize("program", [chosen_before, chosen_before_and_rebound, chosen_before_and_tested])
def test_a_loop_writes_to_what_it_reads_by_another_name(program):
    x = np.array([0.3, 0.5, 0.9])
    try:
        found = bw.jit(program)(x)
    except BwError as error:
        assert "hint" in str(error)
    else:
        assert found == pytest.approx(program(x), rel=1e-12)


def test_too_many_other_names_are_refused_soon():
    """Each of these arrays may be any of the others, as data decide, whole or in part: there are as many ways as there are orders."""
    def program(x):
        n, y, z = 9, x * 1.0, np.cos(x)
        a, b = [x * k for k in range(n)], [y] * n
        for k in range(0, n, 2):
            if np.sum(y) > 1.0:
                b[2 * k % n] = z
            else:
                a[k] = z
            a[-1] = a[-1] * 1.1
        y += 1.0
        return sum(np.sum(v) for v in a) + sum(np.sum(v * v) for v in b)

    with pytest.raises(UnsupportedError, match="data decide in very many ways"):
        bw.jit(program)(X)


def _kept_by_a_loop_inside(x):
    last = np.zeros(3)
    for i in range(8):
        y = np.sin(x) * i
        for _ in range(i):
            last = y
    y[0] = 2.0 * x[1]
    return np.sum(last * last) + np.sum(y)


def _kept_as_an_element_by_a_loop_inside(x):
    kept = [x * 1.0] * 9
    for i in range(8):
        y = np.sin(x - kept[2 * i % 9])
        for _ in range(i):
            kept[-1] = y
    y[0] = 2.0 * x[1]
    return sum(np.sum(v * v) for v in kept) + np.sum(y)


@pytest.mark.parametrize("program", [_kept_by_a_loop_inside, _kept_as_an_element_by_a_loop_inside])
def test_what_a_loop_inside_may_have_given_another_name(program):
    as_python(program, X * 0.4)


# ----- names of arrays that are concrete until somebody writes traced values to them
class _Pair:
    def __init__(self):
        self.one, self.other = np.zeros(12), np.zeros(12)


def _items(x):
    rows = [np.zeros(12) for _ in range(12)]
    for _ in range(11):
        rows[0] = rows[-1]
        x = x * 1.1
    rows[0][2] = x[0]
    return sum(np.sum(row * row) for row in rows)


def _attributes(x):
    pair = _Pair()
    for _ in range(11):
        pair.one = pair.other
        x = x * 1.1
    pair.one[2] = x[0]
    return np.sum(pair.one) * 2.0 + np.sum(pair.other)


def _variables(x):
    one, other, total = np.zeros(12), np.zeros(12), 0.0
    for _ in range(11):
        total += np.sum(one)
        one = other
        x = x * 1.1
    one[2] = x[0]
    return np.sum(one) * 2.0 + np.sum(other) + total


@pytest.mark.parametrize("function", [_items, _attributes, _variables])
def test_a_loop_binds_a_name_to_a_concrete_array(function):
    """The name got a copy once, so that the other name did not see what was written."""
    x = np.linspace(0.2, 0.9, 12)
    assert bw.jit(function)(x) == pytest.approx(function(x), rel=1e-12)


def test_a_loop_that_may_have_no_iterations_binds_a_name_to_a_concrete_array():
    def bound(x):
        pair, k = _Pair(), 0
        while k < x[0]:
            pair.one = pair.other
            k += 1
        pair.one[2] = x[0]
        return np.sum(pair.one) * 2.0 + np.sum(pair.other)

    with pytest.raises(ValueError, match="read-only"):
        bw.jit(bound)(np.ones(3))


def test_a_branch_takes_a_concrete_array_that_changes_in_place_in_a_later_iteration():
    def kept(x):
        a, b = [None] * 6, [np.zeros(3) for _ in range(5)]
        for k in range(4, 0, -1):
            if x[0] * k > 0.5:
                a[k + 1] = b[4 - k]
            b[k - 1] += 0.1
        return sum(np.sum(v) for v in a if v is not None)

    as_python(kept, X * 0.3)


def test_a_row_of_a_concrete_array_that_a_loop_may_have_left_with_its_name():
    """The loop got a copy of the row; what was written to the array was not seen by it."""
    def row(x):
        rows, other, k = np.zeros((4, 3)), np.ones(3), 0
        p = rows[0]
        while x[0] * k > 0.9 and k < 6:
            p = other
            k += 1
        rows[0] += 1.0
        return np.sum(p * x) + k

    with pytest.raises(UnsupportedError, match="p may be another name of an array"):
        bw.jit(row)(X)


def asked_after_a_branch(x):
    v = x * 2
    w, total = v, 0.0
    if x[0] > 2.2:
        v = x * 3
    if v is w:
        total += 1.0
    u = w[:]
    return v.sum() + total + 2.0 * (u is not w) + 4.0 * (w is not v)


def asked_in_a_loop(x):
    v = x * 2
    w, total = v, 0.0
    for k in range(12):
        if x[k % 3] > 2.2:
            v = x * k
        if v is w:
            total += x[k % 3]
        last = v if x[k % 3] > 1.2 else w
        if last is w:
            total += 0.5
    return v.sum() + total


@pytest.mark.parametrize("program", [asked_after_a_branch, asked_in_a_loop])
def test_whether_one_is_another(program):
    as_python(program, X, X[::-1].copy(), 0.1 * X, np.array([0.5, 2.5, 0.1]))
