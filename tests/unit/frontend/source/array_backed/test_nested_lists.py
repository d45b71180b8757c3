"""Lists of lists of numbers that loops assign to at places that move: tables of dynamic programming."""

import numpy as np
import pytest

import bwcompiler as bw
from tests.unit.frontend.comparing import as_python

N = 12
X = np.array([0.94, 0.57, 0.34, 0.32, 1.11, 1.21, 0.91, 1.03, 0.84, 1.23, 1.12, 0.3])


def alignment(x):
    cost = [[0.0] * (N + 1) for _ in range(N + 1)]
    for i in range(1, N + 1):
        cost[i][0] = i * x[0]
        for j in range(1, N + 1):
            cost[0][j] = 0.4 * j
            match = cost[i - 1][j - 1] + (x[i - 1] - x[-j]) ** 2
            cost[i][j] = min(cost[i - 1][j] + 0.13, cost[i][j - 1] + x[3], match)
    return cost[N][N] + cost[-1][2]


def edits(x):
    """Integers at the borders."""
    cost = [[0] * (N + 1) for _ in range(N + 1)]
    for i in range(N + 1):
        cost[i][0] = i
        cost[0][i] = i
    for i in range(1, N + 1):
        for j in range(1, N + 1):
            cost[i][j] = min(cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + 3 * abs(x[i - 1] - x[-j]))
    return cost[-1][-1] + cost[-1][0] * x[0]


def matrix_chain(x):
    best = [[0] * N for _ in range(N)]
    for length in range(2, N):
        for i in range(N - length):
            j = i + length - 1
            best[i][j] = np.inf
            for k in range(i, j):
                cost = best[i][k] + best[k + 1][j] + x[i] * x[k + 1] * x[j + 1]
                if cost < best[i][j]:
                    best[i][j] = cost
    return best[0][N - 2]


def three_levels(x):
    table = [[[0.0] * 4 for _ in range(5)] for _ in range(N)]
    for i in range(1, N):
        for j in range(1, 5):
            for k in range(4):
                table[i][j][k] = 0.5 * table[i - 1][j][k] + table[i][j - 1][3 - k] * x[k] + x[i]
    return table[-1][4][2] + table[3][1][0]


def elimination(x):
    a = [[x[(3 * i + j) % N] + (4 if i == j else 0) for j in range(6)] for i in range(6)]
    determinant = 1.0
    for k in range(6):
        for i in range(k + 1, 6):
            factor = a[i][k] / a[k][k]
            for j in range(k, 6):
                a[i][j] -= factor * a[k][j]
    for k in range(6):
        determinant *= a[k][k]
    return determinant


def _mean_before(table, i, j):
    return 0.5 * (table[i - 1][j] + table[i][j - 1])


class Relaxed:
    def __init__(self, n):
        self.table = [[0.0] * n for _ in range(n)]

    def fill(self, x):
        for i in range(1, N):
            for j in range(1, N):
                self.table[i][j] = _mean_before(self.table, i, j) + x[i] * x[j]
        return self.table[-1][-1]


def of_an_object(x):
    return Relaxed(N).fill(x)


def rows_by_names(x):
    table, total = [[0.0] * N for _ in range(N)], 0.0
    for i in range(1, N):
        row, before = table[i], table[i - 1]
        for j in range(1, N):
            row[j] = 0.3 * before[j - 1] + x[j] * row[j - 1] + x[i]
        total = total + row[-1]
    return total + table[-1][2]


def rows_as_a_whole(x):
    table = [[x[k]] * N for k in range(N)]
    for i in range(1, N):
        least = min(table[i - 1])
        for j in range(N):
            table[i][j] += least + 0.1 * sum(table[i - 1][:3]) + len(table[i])
        for value in table[i]:
            least = least + 0.01 * value
        table[i][-1] = least
    return np.sum(np.array(table)) + max(map(max, table))


def knapsack(x):
    weights, best = [2, 3, 4, 5], [[0.0] * (N + 1) for _ in range(5)]
    for i in range(1, 5):
        for room in range(N + 1):
            best[i][room] = best[i - 1][room]
            if weights[i - 1] <= room:
                best[i][room] = max(best[i - 1][room], best[i - 1][room - weights[i - 1]] + x[i - 1])
    return best[4][N]


def until_data_end_it(x):
    table, i = [[0.0] * N for _ in range(N)], 1
    while i < N and table[i - 1][0] < 2.5:
        for j in range(N):
            table[i][j] = table[i - 1][j] + x[(i * j) % N]
        i += 1
    return table[i - 1][0] + i


def swapped(x):
    table = [[0.0] * N for _ in range(N)]
    for i in range(N):
        for j in range(N):
            table[i][j] = x[i] * x[j] + i
    for i in range(N):
        for j in range(i):
            table[i][j], table[j][i] = table[j][i] * 2, table[i][j] * 3
    copies = [row[:] for row in table]
    copies[0][1] = 7.0
    return table[0][1] * x[0] + copies[0][1] + copies[3][4]


RECORDED = (alignment, matrix_chain, three_levels, elimination, of_an_object, rows_by_names, rows_as_a_whole, knapsack, until_data_end_it,
            swapped)


# ----- what is no table
def one_list_many_times(x):
    table = [[0.0] * N] * N
    for i in range(N):
        for j in range(N):
            table[i][j] = table[i][j] + x[i] * x[j]
    return table[3][4] + table[0][1]


def a_row_that_has_a_name(x):
    table = [[0.0] * N for _ in range(N)]
    first = table[0]
    for i in range(N):
        for j in range(N):
            table[i][j] = x[i] * x[j] + first[0]
    return table[3][4] + first[5]


def rows_bound_anew(x):
    table = [[0.0] * N for _ in range(N)]
    for i in range(1, N):
        table[i] = [value + x[i] for value in table[i - 1]]
        for j in range(N):
            table[i][j] = table[i][j] * x[j]
    return sum(table[-1])


def counts(x):
    table = [[0] * N for _ in range(N)]
    for i in range(1, N):
        for j in range(1, N):
            table[i][j] = table[i - 1][j - 1] + 1 if x[i] > x[j] else max(table[i - 1][j], table[i][j - 1])
    return table[-1][-1] * x[0]


def a_row_that_grows(x):
    table = [[0.0] * N for _ in range(N)]
    first = table[0]
    for i in range(N):
        for j in range(1, N):
            table[i][j] = x[i] * x[j]
        first.append(x[i])
    return table[3][4] + sum(first) + len(table[0])


def a_row_of_two_lists(x):
    table = [[0.0] * N for _ in range(N)]
    other = list(table)
    for i in range(1, N):
        for j in range(N):
            table[i][j] = x[i] * x[j]
            other[i - 1][j] += 0.5
    return sum(table[3]) + sum(other[5])


def an_element_assigned_to_by_another_name(x):
    table = [[x[j % 3] + i for j in range(9)] for i in range(9)]
    first = table[0]
    for i in range(0, 9, 2):
        table[i][8 - i], table[i][i - 1] = table[0][2 * i % 9] * 0.5, table[i][i - 1] * 0.3
        for _ in range(i, 9):
            first[0] = 0.5 * min(table[8 - i]) + 0.5
            table[-1][-1] = max(0.05 * sum(table[8 - i]), 1)
    return sum(sum(row) for row in table)


def one_list_before_all(x):
    table, total = [[0] * 10 for _ in range(10)], 0.0
    for i in range(10):
        total = total + x[i]
        for j in range(i):
            table[-1][9 - j] += 0.1 * min(table[0]) * 0.3 + x[0]
            table[i - 1][0] = np.sin(x[j] + 0.3 * min(table[i]))
        if total > 8.0:
            break
    return total + sum(sum(row) for row in table)


@pytest.mark.parametrize("program", [an_element_assigned_to_by_another_name, one_list_before_all])
def test_lists_with_other_names(program):
    as_python(program, X)


@pytest.mark.parametrize("program", [*RECORDED, one_list_many_times, a_row_that_has_a_name, rows_bound_anew, counts, edits, a_row_that_grows,
                                     a_row_of_two_lists])
def test_as_python(program):
    as_python(program, X, X * 0.9 + 0.1)


@pytest.mark.parametrize("program", RECORDED)
def test_stays_a_loop(program):
    assert "unrolled" not in bw.jit(program).explain(X)


def test_long_tables_are_one_array():
    def program(x):
        n = len(x)
        table = [[0.0] * n for _ in range(n)]
        for i in range(1, n):
            for j in range(1, n):
                table[i][j] = 0.3 * table[i - 1][j - 1] + x[i] * x[j]
        return table[-1][-1]

    x = np.linspace(0.1, 1.0, 200)
    value, gradient = bw.value_and_grad(program)(x)
    assert value == pytest.approx(program(x), rel=1e-12)
    assert gradient[-1] == pytest.approx(2 * x[-1])


def test_behind_the_end_of_a_row():
    def program(x):
        table = [[0.0] * N for _ in range(N)]
        for i in range(N):
            for j in range(N):
                table[i][j] = table[i][j + 1] + x[j]
        return table[0][0]

    with pytest.raises(IndexError, match="is out of bounds"):
        bw.jit(program)(X)


def test_types_of_numbers():
    def singles(x):
        table = [[x[0]] * 9 for _ in range(9)]
        for i in range(1, 9):
            for j in range(9):
                table[i][j] = table[i - 1][j] * x[j]
        return table[-1][-1]

    def flags(x):
        table = [[False] * 9 for _ in range(9)]
        for i in range(1, 9):
            for j in range(1, 9):
                table[i][j] = (x[i] > x[j]) or table[i - 1][j - 1]
        return sum([x[k] for k in range(9) if table[8][k]])

    for program, x in ((singles, X.astype(np.float32)), (flags, X)):
        found, expected = bw.jit(program)(x), program(x)
        assert found.dtype == expected.dtype
        assert found == pytest.approx(expected, rel=1e-6)
