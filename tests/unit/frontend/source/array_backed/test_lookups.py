"""Dictionaries and sets that are asked by numbers that data decides, or the index of a loop."""

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace
from tests.unit.frontend.comparing import as_python

X = np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9, 0.35, 1.7, -0.6, 0.45, 0.15, -0.25])
TABLE = {0: 0.5, 1: 1.5, 2: 2.5}
GRID = {(i, j): 0.1 * i - 0.3 * j for i in range(3) for j in range(4)}
NAMES, WEIGHTS = {0: "low", 5: "high"}, {"low": 1.0, "high": 3.0}
FUNCTIONS = {0: np.sin, 1: np.cos, 2: lambda y: y * y}
ROWS = {0: np.array([1.0, 2.0]), 1: np.array([3.0, 4.0])}
MOVES = {0: (1.0, 0.5), 1: (0.2, 0.7)}


def numbers(x):
    total = 0.0
    for k in range(12):
        total += TABLE[k % 3] * x[k] + TABLE.get(k, 0.1) * k
    return total


def pairs(x):
    total = 0.0
    for k in range(12):
        total += GRID[k % 3, k // 3] * x[k] + GRID.get((k, 1), 2.0)
    return total


def words(x):
    return sum(WEIGHTS[NAMES[5 if x[k] > 0.5 else 0]] * x[k] for k in range(4))


def functions(x):
    total = 0.0
    for k in range(12):
        total += FUNCTIONS[k % 3](x[k])
    return total


def arrays(x):
    total = 0.0
    for k in range(12):
        total += np.sum(ROWS[k % 2] * x[:2]) * x[k]
    return total


def traced_numbers(x):
    table = {3: x[0], 7: x[1] ** 2, 1: 5.0}
    total = 0.0
    for k in range(12):
        total += table.get(k, x[2]) * x[k]
    return total


def tuples(x):
    state, y = 0, x[0]
    for k in range(20):
        rate, drift = MOVES[state]
        y = rate * y * 0.9 + drift * 0.1 * x[1]
        state = 1 if y < 0.05 * k else 0
    return y


def counts(x):
    found = {0: 0.0, 1: 0.0, 2: 0.0}
    for k in range(12):
        found[(k * k) % 3] += x[k]
        found[1 if x[k] > 0.5 else 2] *= 1.5
    return found[0] + 2 * found[1] - found[2]


def memberships(x):
    total = 0.0
    for k in range(12):
        if k % 5 in {1, 3} or k in TABLE:
            total += x[k] ** 2
    return total


PROGRAMS = [numbers, pairs, words, functions, arrays, traced_numbers, tuples, counts, memberships]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program) -> None:
    as_python(program, X)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_loops_are_native(program) -> None:
    assert not trace(program, (X,)).notes


def _found(x):
    return TABLE[9 if x > 0 else 0]


def _assigned(x):
    table = {0: 1.0, 1: 2.0}
    table[7 if x > 0 else 1] = x
    return table[1] + (2 if 7 in table else 0)


def test_keys_that_are_not_there_raise_when_the_program_runs() -> None:
    compiled = bw.jit(_found)
    assert compiled(-1.0) == _found(-1.0)
    with pytest.raises(KeyError, match="test_lookups"):
        compiled(1.0)


def test_keys_that_are_not_there_are_assigned_to() -> None:
    compiled = bw.jit(_assigned)
    assert [compiled(x) for x in (-1.0, 1.0, -2.0)] == [_assigned(x) for x in (-1.0, 1.0, -2.0)] == [-1.0, 4.0, -2.0]


def test_what_a_table_holds_is_read_at_every_call() -> None:
    table = {0: 1.0, 1: 2.0}
    compiled = bw.jit(lambda x: table[1 if x > 0 else 0] * x)
    assert compiled(2.0) == 4.0
    table[1] = 5.0
    assert compiled(2.0) == 10.0


def test_arrays_of_a_table_are_not_assigned_to() -> None:
    def changes(x):
        row = ROWS[1 if x > 0 else 0]
        row[0] = x
        return row

    with pytest.raises(ValueError, match="test_lookups"):
        bw.jit(changes)(1.0)


def _lists(x):
    counts, rows, which = [0.0] * 4, [x[:3], x[3:6], 2 * x[:3]], int(10.3 * np.abs(x[3])) % 3
    for k in range(12):
        counts[int(1.037 * x[0] * k) % 4] += x[k]
        new = [0.0] * 3
        for j in range(3):
            new[j] = x[j] * k
        counts[0] += new[k % 3]
    return counts[0] + 2 * counts[1] - counts[-1] + np.sum(rows[which]) + [(x[0], 1.0), (x[1], 2.0), (x[2], 3.0)][which][0] * FUNCTIONS[which](x[5])


def _integers(x):
    parents = list(range(6))
    for k in range(5):
        a, b = int(5.37 * np.abs(x[k])) % 6, int(7.73 * np.abs(x[k + 1])) % 6
        while parents[a] != a:
            a = parents[a]
        while parents[b] != b:
            b = parents[b]
        parents[a] = b
        parents[-1 - a] = b
    return sum(k * parent for k, parent in enumerate(parents)) * x[0]


@pytest.mark.parametrize("program", [_lists, _integers], ids=lambda program: program.__name__)
def test_lists_are_asked_and_assigned_to_at_traced_places(program) -> None:
    as_python(program, X)


def test_places_behind_the_end_raise_when_the_program_runs() -> None:
    def outside(x):
        found = [x, 2 * x, 3 * x]
        found[int(x)] = 5.0
        return found[0]

    compiled = bw.jit(outside)
    assert compiled(1.5) == 1.5 and compiled(-3.0) == 5.0
    with pytest.raises(IndexError, match="list index out of range"):
        compiled(3.0)


def made_anew(x):
    flows, kept = {"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 2.0}
    for k in range(12):
        step = 2 / (k + 2)
        best = int(np.argmin([flows["a"] + x[0], flows["b"] + x[1]]))
        target = dict.fromkeys(flows, 0.0)
        for place, name in enumerate(flows):
            if place == best:
                target[name] += 3.0
        scaled = kept.copy()
        scaled["a"] *= x[k]
        for name in flows:
            flows[name] = (1 - step) * flows[name] + step * target[name] * scaled[name]
    return flows["a"] * x[0] + flows["b"] * x[1] + kept["a"]


def test_dictionaries_that_an_iteration_makes_of_keys_or_copies() -> None:
    as_python(made_anew, X)
    assert "unrolled" not in bw.jit(made_anew).explain(X)


# ----- pairs of indices as keys
def aligned(x):
    """A table that loops fill, cell by cell, as `memo` of dynamic programming."""
    memo = {(-1, -1): 0.0}
    for i in range(7):
        memo[(i, -1)] = 1e3
    for j in range(6):
        memo[(-1, j)] = 1e3
    for i in range(7):
        for j in range(6):
            nearest = min(memo[(i - 1, j)], memo[(i, j - 1)], memo[(i - 1, j - 1)])
            memo[(i, j)] = (x[i] - x[11 - j]) ** 2 + nearest
    return memo[(6, 5)]


def pairs_that_are_there(x):
    table = {(i, j): x[i] * x[j] for i in range(3) for j in range(4)}
    for _ in range(9):
        for i in range(3):
            for j in range(4):
                table[(i, j)] = np.sin(table[(i, j)] + x[i])
    return table[(2, 3)] + table[(0, 1)]


@pytest.mark.parametrize("program", [aligned, pairs_that_are_there], ids=lambda program: program.__name__)
def test_pairs_of_indices_as_keys(program) -> None:
    as_python(program, X)
    gradient, h = bw.grad(program)(X), 1e-6
    differences = [(program(X + h * one) - program(X - h * one)) / (2 * h) for one in np.eye(12)]
    assert gradient == pytest.approx(differences, rel=1e-6, abs=1e-8)


# ----- whether an element is in an array
def _met(x, k):
    total, known = 0.0, np.array([1, 3, 5])
    for i in range(5):
        if i in k:
            total += x[i % 3]
        elif x[0] not in x[1:] and i in known:
            total -= x[1] ** 2
    return total, 2.0 in x, x[1] in x[x > 1], 7 in np.argsort(x), k[0] in x, x[0] in np.array([0.3, 4.0]), x[:2] in x[None, :2], None in x


@pytest.mark.parametrize("k", [[3, 1, 2], [0, 0, 4], [7, 2, -1]])
def test_elements_of_arrays(k):
    x, k = np.array([0.3, 2.0, 0.1]), np.array(k)
    assert bw.jit(_met)(x, k) == _met(x, k)
    steps = [np.eye(3)[i] * 1e-6 for i in range(3)]
    differences = [(_met(x + step, k)[0] - _met(x - step, k)[0]) / 2e-6 for step in steps]
    np.testing.assert_allclose(bw.grad(lambda x: _met(x, k)[0])(x), differences, rtol=1e-7)


def test_rows_that_are_not_fixed_have_known_places():
    stiffness = np.diag([2.0, 3.0, 4.0, 5.0]) + 1.0

    def solved(stiffness, load, fixed):
        free = [i for i in range(4) if i not in fixed]
        found = np.zeros(4)
        found[free] = np.linalg.solve(stiffness[np.ix_(free, free)], load[free])
        return found

    for fixed in np.array([0, 2]), np.array([3, 3]):
        np.testing.assert_allclose(bw.jit(solved)(stiffness, np.arange(4.0), fixed), solved(stiffness, np.arange(4.0), fixed), rtol=1e-13)


JOINTS = [(0.1 * k, k % 3, 0.5 - k) for k in range(20)]


def a_known_table(x):
    total = 0.0
    for i in range(20):
        u, k, v = JOINTS[i]
        total += x[k] * u + v
    return total


def a_table_of_traced_numbers(x):
    total, table = 0.0, [(x[0] * k, k, 0.5) for k in range(20)]
    for i in range(19):
        u, k, _ = table[i + 1]
        total += x[1] * u * k
        if i < 18:
            total += table[i + 2][0]
    return total


def a_table_of_known_and_traced_ones(x):
    """Of numbers and arrays."""
    total, table = 0.0, [(x[0] * x[1], np.float64(0.5), np.eye(3))] + [(np.float64(k), x[1] * k, np.diag(x) * k) for k in (3, 1, 4, 1, 5, 9, 2, 6)]
    for u, v, m in table:
        total = np.tanh(0.1 * total * u) + 0.01 * v * np.sum(m @ (x + total))
    return total


def layers_of_python_numbers(x):
    w, total = float(x[0]), 0.0
    for n, d in [(1.0, w)] + [(w * k, 0.1 * k) for k in (3, 1, 4, 1, 5, 9, 2, 6)] + [(1.5, 0.2)]:
        total = np.tanh(total * n) + d * np.cos(total + n) + x[1] * np.exp(-total * total)
    return total


def rows_in_range_as_a_test_says(x):
    rows = []
    for i in range(12):
        rows.append(x * i)
    force, total = np.zeros(3), 0.0
    for i in reversed(range(12)):
        if i < 11:
            force = force + rows[i + 1] * 0.5
        else:
            force = np.ones(3)
        total += force @ rows[i]
    return total


@pytest.mark.parametrize("program", [a_known_table, a_table_of_traced_numbers, a_table_of_known_and_traced_ones, layers_of_python_numbers,
                                     rows_in_range_as_a_test_says],
                         ids=lambda program: program.__name__)
def test_tables_and_rows_at_places_that_move(program):
    as_python(program, np.array([0.31, 0.52, 0.73]))
    assert "unrolled" not in bw.jit(program).explain(np.array([0.31, 0.52, 0.73]))


def test_rows_out_of_range():
    def program(x):
        rows, total = [], 0.0
        for i in range(12):
            rows.append(x * i)
        for i in range(12):
            if i > 3:
                total += np.sum(rows[i + 1])
        return total

    with pytest.raises(IndexError, match="list index out of range"):
        bw.jit(program)(np.ones(3))


def test_tables_of_traced_numbers_are_not_traced_again_and_again():
    def program(x):
        table = [(x[0], 1.0), (x[1] * x[0], 2.0), (np.sin(x[2]), 0.5), (x[0] + x[1], 1.5), (x[1], 2.5), (x[2], 3.5), (x[2] * x[2], 0.1),
                 (np.cos(x[0]), 0.2), (x[1] / x[0], 0.3), (x[0] * 3, 0.7)]
        total = 0.0
        for i in range(10):
            u, v = table[i]
            total += u * v * i
        return total

    x = np.array([0.31, 0.52, 0.73])
    as_python(program, x)
    assert not any("do not settle" in str(note) for note in trace(program, (x,)).notes)


# ----- lists of small arrays, some of which are known
def _places(x):
    return [np.array([0.0, 1.0 * k]) for k in range(5)] + [x[k:k + 2] * 2 for k in range(6)]


def chain_of_nodes(x):
    nodes, total = _places(x), 0.0
    for i in range(10):
        edge = nodes[i + 1] - nodes[i]
        total = total + edge @ edge * nodes[-1 - i][0]
    return total


def all_pairs(x):
    nodes, total = tuple(_places(x)), 0.0
    for i in range(11):
        for j in range(i):
            r = nodes[i] - nodes[j]
            total = total + 1 / np.sqrt(r @ r + 0.1)
    return total


def in_a_side(x):
    nodes, total = _places(x), 0.0
    for k in range(9):
        if x[k] > 0.4:
            for i in range(10):
                total = total + nodes[i + 1] @ nodes[i] * x[k]
        else:
            total = total * 0.9
    return total


def written_through(x):
    nodes, total = _places(x), 0.0
    for i in range(10):
        node = nodes[i]
        node[0] += 1.0                             # is unrolled
        total = total + nodes[i + 1] @ node
    return total + nodes[3][0]


def written_beside(x):
    nodes, total = _places(x), 0.0
    for i in range(10):
        total = total + np.sum(nodes[-1 - i])
        nodes[5][1] += 0.1 * total                 # is unrolled
    return total + sum(np.sum(node) for node in nodes)


@pytest.mark.parametrize("program", [chain_of_nodes, all_pairs, in_a_side, written_through, written_beside])
def test_small_arrays_of_a_list(program):
    as_python(program, X, X * 0.9)
    assert ("unrolled" in bw.jit(program).explain(X)) == program.__name__.startswith("written")


# ----- keys in keys, as of the value of an action in a state
QUALITY = {((i, j), action): 0.3 * i - 0.2 * j for i in range(3) for j in range(3) for action in "lr"}


def known_qualities(x):
    total, state = 0.0, (0, 0)
    for k in range(12):
        best = max(QUALITY[state, action] for action in "lr")
        total += (best + QUALITY.get((state, "l" if k < 30 else "r"), 0.0)) * x[k]
        state = ((state[0] + 1) % 3, 2 - state[0])
    return total


def learned_qualities(x):
    quality = {((i, j), action): x[0] * i for i in range(3) for j in range(3) for action in "lr"}
    total, i, j = 0.0, 0, 1
    for k in range(12):
        if x[k] > 0.31:
            i = (i + 1) % 3
        else:
            j = (j + 2) % 3
        quality[(i, j), "l"] += 0.5 * x[k] * (quality[(j, i), "r"] - quality[(i, j), "l"] + 1.0)
        if ((i, 0), "r") in quality and ((i, j), "x") not in quality:
            total += quality[(i, j), "l"] * x[k]
    return total


@pytest.mark.parametrize("program", [known_qualities, learned_qualities], ids=lambda program: program.__name__)
def test_keys_in_keys(program):
    as_python(program, X)
    assert not trace(program, (X,)).notes


def test_keys_in_keys_of_integer_arguments():
    def visited(x, start, moves):
        trace_of, state, seen = {}, start, {(0, (0, 1))}
        for k, move in enumerate(moves):
            trace_of[state, move] = x[k]
            state = (state[0] + 1, state[1]) if move == "s" else (state[0], state[1] + 1)
        return sum(v * (2.0 if (0, (at[0], at[1])) in seen else 1.0) for (at, _), v in trace_of.items())

    compiled = bw.jit(visited)
    for start in ((0, 0), (0, 1), (2, 1)):
        np.testing.assert_allclose(compiled(X, start, "sses"), visited(X, start, "sses"))


def test_keys_in_keys_that_are_not_there():
    def found(x, i):
        return x * QUALITY[(int(x > 0) * 5, i), "r"]

    compiled = bw.jit(found)
    assert compiled(-1.0, 1) == found(-1.0, 1)
    with pytest.raises(KeyError, match="test_lookups"):
        compiled(1.0, 1)
