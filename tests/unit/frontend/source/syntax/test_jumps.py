"""break, continue and return in branches after branches that are left: what follows runs once on every way."""

import itertools

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend import trace
from bwcompiler.frontend.source.syntax.statements import jumps
from bwcompiler.ir.semantics.graph_interpreter import interpret
from tests.support.gradcheck import central_differences
from tests.support.source import from_text

JUMPS = ("break", "continue", "return n")
FORMS = {
    "elif": "if v < 0.6:\n    n += 10.0\nelif v > 0.8:\n    {0}\nif v < 0.2:\n    {1}\nn += 1.0\n",
    "else": "if v > 0.3:\n    n += 10.0\nelse:\n    n += 100.0\n    if v < 0.1:\n        {0}\nif v > 0.9:\n    {1}\nn += 1.0\n",
    "deeper": "if v > 0.3:\n    if v > 0.9:\n        {0}\n    n += 10.0\nif v < 0.1:\n    n += 100.0\nelif v < 0.2:\n    {1}\nn += 1.0\nif v > 0.5:\n    {0}\nn += 3.0\n",
}
VALUES = [np.random.default_rng(seed).random(12) for seed in range(4)]


def indented(text, levels):
    return "".join("    " * levels + line + "\n" for line in text.splitlines())


@pytest.fixture(autouse=True, params=[jumps._LIMIT, 0], ids=["", "long"])
def limit(request, monkeypatch):
    """What follows a branch stands in both of its sides; or, if it is long, behind it, for where it was not left."""
    monkeypatch.setattr(jumps, "_LIMIT", request.param)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("first", "second"), [*itertools.product(JUMPS, repeat=2)])
def test_in_a_loop(form, first, second):
    text = FORMS[form].format(first, second)
    program = from_text(f"def program(x):\n    n = 0.0\n    for v in x:\n{indented(text, 2)}    return n + 1000.0\n", "program")
    graph = trace(program, VALUES[:1]).graph
    for x in VALUES:
        assert interpret(graph, [x])[0] == program(x)


LONG = f"n += {' + '.join(['0.01 * v'] * 80)}\n"           # too much to stand behind both sides of a branch


@pytest.mark.parametrize(("first", "second"), [("return n", "return -n"), ("break", "return n"), ("continue", "break"), ("return n", "continue")])
def test_before_much_that_both_sides_go_on_to(first, second):
    text = FORMS["deeper"].replace("n += 3.0\n", LONG).replace("n += 1.0\n", LONG).format(first, second)
    program = from_text(f"def program(x):\n    n = 0.0\n    for v in x:\n{indented(text, 2)}    return n + 1000.0\n", "program")
    graph = trace(program, VALUES[:1]).graph
    for x in VALUES:
        assert interpret(graph, [x])[0] == program(x)


def test_a_function_that_returns_before_much() -> None:
    """Parts of what is returned are not alike, and the object that is changed may be asked for later."""
    text = FORMS["deeper"].replace("n += 3.0\n", LONG).replace("n += 1.0\n", LONG).replace("n += 100.0", "state.low = n")
    text = f"def step(state, v):\n    n = 1.5 * v\n{indented(text.format('return False, n', 'return n, 2.0'), 1)}    return n, v\n"
    step = from_text(text, "step")

    class State:
        low = 0.5

    def program(v):
        state = State()
        first, second = step(state, v)
        return first + 2.0 * second + state.low

    compiled, slope = bw.jit(program), bw.grad(program)
    for v in np.linspace(0.02, 0.98, 6):
        assert compiled(v) == pytest.approx(program(v), rel=1e-14)
        assert slope(v) == pytest.approx((program(v + 1e-6) - program(v - 1e-6)) / 2e-6, rel=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_in_a_function_that_writes_to_its_argument(form):
    text = FORMS[form].format("return", "return").replace("n +=", "x[0] +=")
    program = from_text(f"def change(x, v):\n{indented(text, 1)}\ndef program(x, v):\n    x = x.copy()\n    change(x, v)\n    return x\n", "program")
    compiled = bw.jit(program)
    for v in np.linspace(0.02, 0.98, 17):
        assert np.array_equal(compiled(VALUES[0], v), program(VALUES[0], v))


EARLY = """\
def program(x):
    y = 0.0
    if x[0] > 0.5:
        if x[1] > 0.5:
            return np.sum(x) * 7
        y = x[1]
    elif x[2] > 0.6:
        for k in range(10):
            if x[1] * k > 3.0:
                return k + x[0]
    if y < 0.2:
        x = x * 2.0
    for v in x:
        if v > 1.5:
            break
        y += v * v
    return np.sum(x) + y
"""


def test_a_function_returns_from_branches_and_loops_in_branches_before_more_is_done():
    program = from_text("import numpy as np\n" + EARLY, "program")          # a code object of its own for each limit
    gradient = bw.value_and_grad(program)
    for x in VALUES:
        value, found = gradient(x)
        assert value == pytest.approx(program(x), rel=1e-13)
        np.testing.assert_allclose(found, central_differences(program, x), atol=1e-6)


def test_what_a_side_that_returns_has_not_bound() -> None:
    """Nobody asks for it where the function has returned; where the loop was only left it may be missing."""
    def root(x):
        for k in range(30):
            slope = 3.0 * x[1] * x[1]
            if slope < x[0]:
                return -1.0 * k
            step = (x[1] ** 3 - x[2]) / slope
            x = np.array([x[0], x[1] - step, x[2]])
            if abs(step) < 1e-12:
                break
        return x[1] + step

    compiled = bw.jit(root)
    for x in ([1e-3, 2.0, 5.0], [1e-3, 0.01, 5.0], [3.0, 1.5, 0.1]):
        assert compiled(np.array(x)) == pytest.approx(root(np.array(x)), rel=1e-12)

    def left(x):
        for v in x:
            if v > 0.5:
                break
            last = v
        return last

    x = np.linspace(0.1, 1.0, 12)
    assert bw.jit(left)(x) == left(x)
    with pytest.raises(UnboundLocalError, match="last"):
        bw.jit(left)(x + 1)


def test_what_a_side_that_returns_has_not_assigned_to_others() -> None:
    """An attribute can be asked for when the function has returned."""
    class State:
        pass

    def step(state, x):
        for v in x:
            if v > 0.5:
                return
            state.last = v

    def program(x):
        state = State()
        step(state, x)
        return state.last

    with pytest.raises(bw.errors.BwError):
        bw.jit(program)(np.linspace(0.1, 1.0, 12))
