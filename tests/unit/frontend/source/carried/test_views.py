"""Names of one array in captured code: what is written by one of them is seen by the others, as in NumPy."""

import itertools

import numpy as np
import pytest

from bwcompiler.frontend.tracing.trace import trace
from tests.support.source import from_text
from tests.unit.frontend.comparing import as_python, compare

# ----- parts of arrays that the function makes
MAKERS = ("np.zeros((9, 9))", "np.arange(81.0).reshape(9, 9).copy()", "np.zeros((9, 9)).T", "np.zeros((3, 9, 9))[1]")
LOOPS = ("for k in range(9):", "for k in range(8, -1, -1):", "for k, part in enumerate(made):", "k = 0\n    while k < 9 and x[0] > -9:\n        k += 1",
         "k = np.argmax(x)\n    if x[k] > 0:")
PARTS = ("made[k - 1]", "made[:, k - 1]", "made.T[k - 1]", "made[k - 1][::-1]", "part")
WRITES = ("part[2] = x[k - 1]", "part[...] = 3.0", "part += x[k - 1]", "part *= 2.0", "np.add(part, x[0], out=part)", "part.fill(x[0])",
          "part[1:][0] = x[1]", "part.flat[1] = x[1]", "np.copyto(part, x[2])", "part.sort()", "part[:] = x", "part[..., 0] -= 1.0")


@pytest.mark.parametrize("write", WRITES)
def test_parts_of_arrays_that_the_function_makes(write):
    x = np.linspace(1.0, -0.5, 9)
    for number, (loop, part) in enumerate(itertools.product(LOOPS, PARTS)):
        if part == "part" and "part" not in loop:
            continue
        maker = MAKERS[number % len(MAKERS)]
        text = f"def program(x):\n    made = {maker}\n    {loop}\n        part = {part}\n        {write}\n    return made, made[1] * x\n"
        program = from_text(text.replace("def ", "import numpy as np\ndef ", 1), "program")
        try:
            compare(program, x)
        except AssertionError as error:
            raise AssertionError(text) from error


def test_parts_of_moving_size():
    def program(x):
        made, other = np.zeros((9, 9)), np.ones(9)
        for k in range(9):
            part = made[k:]
            part[0] = x[k]
            part *= 1.5
            other[:k + 1][k] = 2.0
        return made, other * x
    compare(program, np.linspace(1.0, -0.5, 9))


# What is computed of known numbers alone, and written in an iteration: not once for all.
FUNCTIONS = ("np.put(made, [0], 3.0)", "np.add.at(row, [0], 1.0)", "np.copyto(row, made[0] + 1)", "np.fill_diagonal(made, 2.0)",
             "np.putmask(row, row == 0, 2.0)", "np.place(row, row == 0, [2.0])", "np.add(row, 1.0, row)", "np.add(row, 1.0, out=(row,))",
             "np.put_along_axis(row, np.array([0]), 2.0, 0)", "np.cumsum(row + 1, out=row)", "np.sum(made + 1, 0, None, row)",
             "np.clip(row, 1, 2, out=row)", "(row + 1).clip(1, 2, row)", "(made + 1).sum(0, None, row)", "np.stack([row + 1], out=made[:1])",
             "row.__setitem__(0, 5.0)", "np.einsum('ij->i', made + 1, out=row)", "np.add.reduce(made + 1, 0, None, row)",
             "np.add.accumulate(row + 1, out=row)", "np.take(row + 1, np.arange(9), out=row, mode='clip')", "np.copyto(src=2.0, dst=row)",
             "np.mean(made + 1, axis=0, out=row)", "np.round(row + 1.2, 0, row)", "np.dot(made, row + 1, row)", "made[k] = row + k",
             "np.outer(row + 1, row, made)", "np.concatenate((row[:4] + 1, made[1, :5]), out=row)", "row.put([0], 4.0)")


@pytest.mark.parametrize("statement", FUNCTIONS)
def test_known_numbers_written_in_loops(statement):
    text = ("import numpy as np\ndef program(x):\n    made, row, total = np.zeros((9, 9)), np.zeros(9), 0.0\n    for k in range(9):\n"
            f"        total = total + made[0, 0] * x[k] + made[1, 1] + row[0]\n        {statement}\n    return total, made * x, row\n")
    compare(from_text(text, "program"), np.linspace(-1.0, 1.0, 9))


@pytest.mark.parametrize("change", ["made[0] = 5.0", "made += 1.0", "made.fill(2.0)", "made.T[0] -= 1.0", "np.copyto(made, 1.0)"])
def test_parts_see_later_changes(change):
    text = f"import numpy as np\ndef program(x):\n    made = np.ones((9, 9))\n    part = made[np.argmin(x)]\n    {change}\n    return part * x\n"
    compare(from_text(text, "program"), np.linspace(-1.0, 1.0, 9))


def test_rows_of_tables_stay_known():
    """What is only read of an array that the function makes is no reason to trace it."""
    def program(x):
        table = np.array([[1, 2], [0, 3], [2, 2]])
        total = 0.0
        for k in range(len(x)):
            row = table[k % 3]
            total += x[k] * row[0]
        return total, x[table[1, 1]], np.zeros(table[2, 0])
    compare(program, np.linspace(-1.0, 1.0, 9))


def last_row(x):
    table, total = np.outer(x, x), 0.0
    for k in range(len(x)):
        row = table[k]
        total = total + row[0] ** 2
    return total * row[1] + np.sum(row)


def last_part(x):
    total = 0.0
    for k in range(len(x) - 2):
        part = x[k + 2:k:-1]
        total = total + part @ part
    return total * part[0]


def last_made(x):
    total = 0.0
    for k in range(len(x)):
        made = np.cumsum(x * total + k)
        one = made[k:]
        total = total * 0.5 + one[0]
    return total + np.sum(one)


def written_afterwards(x):
    table = np.outer(x, x)
    for k in range(len(x)):
        row = table[k]
        row[0] = x[k]
    row[1] = 3.0 * x[0]
    return np.sum(table ** 2)


def in_an_outer_loop(x):
    table, total = np.outer(x, x), 0.0
    for i in range(len(x)):
        for k in range(len(x)):
            one = table[i, k:k + 1] * x[k]
            row = table[k]
        total = total + one[0] * row[i]
    return total


@pytest.mark.parametrize("program", [last_row, last_part, last_made, written_afterwards, in_an_outer_loop], ids=lambda program: program.__name__)
def test_views_of_the_last_iteration(program):
    x = np.linspace(0.4, 1.6, 12)
    as_python(program, x, x[::-1] * 0.9)


@pytest.mark.parametrize("program", [last_row, last_part, written_afterwards, in_an_outer_loop], ids=lambda program: program.__name__)
def test_loops_with_views_of_the_last_iteration(program):
    assert trace(program, (np.linspace(0.4, 1.6, 12),)).loops
