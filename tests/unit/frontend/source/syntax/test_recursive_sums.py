"""Functions that add what they give for several other arguments, until data say so: adaptive quadrature."""

import numpy as np
import pytest

import bwcompiler as bw


def check(fun, x=0.7):
    value, slope = bw.value_and_grad(fun)(x)
    np.testing.assert_allclose(value, fun(x), rtol=1e-12)
    np.testing.assert_allclose(slope, (fun(x + 1e-6) - fun(x - 1e-6)) / 2e-6, rtol=1e-5, atol=1e-7)


def simpson(f, a, b, tolerance):
    middle = 0.5 * (a + b)
    whole = (b - a) / 6 * (f(a) + 4 * f(middle) + f(b))
    parts = (b - a) / 12 * (f(a) + 4 * f(0.5 * (a + middle)) + 2 * f(middle) + 4 * f(0.5 * (middle + b)) + f(b))
    if abs(parts - whole) < 15 * tolerance:
        return parts + (parts - whole) / 15
    left = simpson(f, a, middle, tolerance / 2)
    right = simpson(f, middle, b, tolerance / 2)
    return left + right


def trapezoids(f, a, b, of_a, of_b, tolerance):
    middle = (a + b) / 2
    of_middle = f(middle)
    one, two = (b - a) / 2 * (of_a + of_b), (b - a) / 4 * (of_a + 2 * of_middle + of_b)
    return two if abs(two - one) < tolerance else (
        trapezoids(f, a, middle, of_a, of_middle, tolerance / 2) + trapezoids(f, middle, b, of_middle, of_b, tolerance / 2))


def branching(x, d):
    if x < 0.2:
        return x * x
    return x + 0.5 * d + branching(x * 0.6, d) + branching(x * 0.3, d)


def test_results_in_variables():
    check(lambda x: simpson(lambda t: np.cos(x * t ** 2), 0.0, 3.0, 1e-7))


def test_a_conditional_expression():
    check(lambda x: trapezoids(lambda t: np.sqrt(t + x), 0.0, 1.0, np.sqrt(x), np.sqrt(1 + x), 1e-5))


def test_terms_beside_the_calls():
    check(lambda x: branching(x, 2 * x))


def test_a_function_inside_with_a_greatest_depth():
    def integral(x):
        def f(t):
            return np.exp(-x * t) * np.sin(5 * t)

        def further(a, b, of_a, of_b, whole, tolerance, depth):
            m = (a + b) / 2
            left, right = (m - a) * f((a + m) / 2), (b - m) * f((m + b) / 2)
            change = left + right - whole
            if depth <= 0 or abs(change) <= tolerance:
                return left + right + change / 3
            return further(a, m, of_a, f(m), left, tolerance / 2, depth - 1) + further(m, b, f(m), of_b, right, tolerance / 2, depth - 1)
        return further(0.0, 2.0, f(0.0), f(2.0), 2.0 * f(1.0), 1e-3, 20)

    check(integral)


def test_what_else_is_done_with_results_is_refused():
    def product(x):
        return x if x < 0.01 else product(x / 2) * product(x / 3)

    with pytest.raises(RecursionError) as caught:
        bw.jit(product)(1.0)
    assert "a recursion that ends by traced values" in "".join(caught.value.__notes__)


def leaves(x):
    return 1 if x < 0.1 else leaves(x / 2) + leaves(x / 3)


def test_sums_of_integers_are_integers():
    found = bw.jit(leaves)(0.9)
    assert found == leaves(0.9) and found.dtype == np.int64


def quicksort(items):
    if len(items) <= 1:
        return items
    pivot = items[len(items) // 2]
    return quicksort([v for v in items if v < pivot]) + [v for v in items if v == pivot] + quicksort([v for v in items if v > pivot])


def quicksort_by_names(items):
    if len(items) <= 1:
        return items
    pivot = items[0]
    first, same, last = [v for v in items if v < pivot], [v for v in items if v == pivot], [v for v in items if v > pivot]
    return quicksort_by_names(first) + same + quicksort_by_names(last)


@pytest.mark.parametrize("order", [quicksort, quicksort_by_names])
def test_lists_are_no_terms_of_a_sum(order):
    """They would be put together in another order."""
    with pytest.raises(RecursionError) as raised:
        bw.grad(lambda x: order(list(x))[0])(np.array([1.25, 2.1, 0.55]))
    assert "for an order, sorted(x) or np.sort(x)" in raised.value.__notes__[0]
