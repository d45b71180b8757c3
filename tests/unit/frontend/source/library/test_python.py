"""Python's own constructs on traced values: values as Python gives them, gradients as finite differences."""

import ast
import collections
import linecache
import math
import operator
from functools import reduce

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import TracerBoolError
from bwcompiler.frontend import trace
from tests.unit.frontend.comparing import as_python


def found_or_not(x):
    total = 0.0
    for k in range(12):
        total += x[k]
        if total > 3:
            break
    else:
        total = total * 10
    for v in x:
        if v > 100:
            return v
    else:
        total += 1.0
    while total < 5:
        total = total * 1.1
        if total < 0:
            break
    else:
        total -= 0.5
    return total


def outer_jumps_of_else(x):
    total = 0.0
    for i in range(9):
        for j in range(9):
            if x[i] * x[j] > 2:
                break
            total += x[j]
        else:
            if x[i] > 0.5:
                continue
            total += 10.0
        total = total * 0.9
    return total


def left_in_with_and_try(x):
    with np.errstate(all="ignore"):
        if x[0] > 0.5:
            return np.sum(x)
        if x[1] > 0.5:
            return np.sum(x * x)
        return np.sum(x ** 3)


def many_returns(x):
    if x[0] > 1.5:
        return x[1]
    if x[0] > 0.5:
        return x[2]
    y = x[0] * 2
    if y > 0.5:
        for k in range(12):
            if x[k] < y:
                return x[k] * y
        return y
    elif y < -1:
        return x[3]
    return np.sum(x)


def caught_while_tracing(x):
    try:
        y = x.reshape(5, 5)
    except ValueError:
        return np.sum(x)
    if x[0] > 0:
        return np.sum(y)
    return np.prod(y)


def extremes(x):
    table = dict(zip("abcdef", x, strict=False))
    pairs = [(v, k * v) for k, v in enumerate(table.values())]
    best = max(pairs, key=lambda pair: pair[1])
    return (max(table.values()) + min(v * v for v in table.values()) + max(collections.deque(x)) + best[0] * 2 + best[1]
            + max([], default=3.0) + min(pairs, key=lambda pair: abs(pair[0]))[1] + sum(sorted(table.values())[:2]))


def ordered(x):
    points = [(v, np.sin(v)) for v in x]
    points = sorted(points, key=lambda point: -point[1])
    last = sorted(x, reverse=True)[-1]
    return sum((k + 1) * v for k, (v, _) in enumerate(points)) + last


def truths(x):
    known = any(k > 3 for k in range(5)) and all([True, 1])
    return np.sum(x) if known and any(v > 1 for v in x) and not all(v > 0 for v in x) else np.prod(x)


def numbers(x):
    rows = x.reshape(3, 4).tolist()
    return rows[1][2] * x[3].item() + x.item(5) + x.reshape(3, 4).item((2, 1)) + float(x[0]) + x[:1].item() ** 2


class Particle:
    def __init__(self, position):
        self.position = np.array(position, dtype=float)
        self.parts = [np.zeros(2), np.zeros(2)]
        self.table = {"sum": np.zeros(2)}


def concrete_arrays_of_objects(x):
    particles = [Particle([0, 1]), Particle([1, 2])]
    for k, particle in enumerate(particles):
        particle.position += x[2 * k:2 * k + 2]
        particle.parts[k] -= x[:2] * particle.position
        particle.table["sum"] *= 2.0
        particle.table["sum"] += x[1]
        particle.position[0] *= x[3]
    return sum(np.sum(p.position ** 2) + np.sum(p.parts[0] + p.parts[1]) + p.table["sum"][0] for p in particles)


def concrete_arrays_at_lists(x):
    k = np.zeros((4, 4))
    f = np.zeros(4)
    for e, nodes in enumerate([[0, 1], [1, 2], [2, 3]]):
        k[np.ix_(nodes, nodes)] += x[e] * np.array([[1.0, -1.0], [-1.0, 1.0]])
        f[nodes] += x[e + 3]
        f[f == 0] -= x[1]
    return np.sum(k ** 2) + f @ f


def rows_of_a_mask(x):
    a = x.reshape(6, 2)
    chosen = a[a[:, 0] > 0]
    return (np.sum(chosen.mean(axis=0) ** 2) + np.sum(np.std(chosen, 0)) + np.sum(chosen.sum((0, 1)))
            + np.prod(chosen.prod(axis=-2)))


def products(x):
    return reduce(operator.mul, x) + reduce(lambda a, b: a * 0.5 + b, list(x), 0.0)


@np.vectorize
def kinked(v, w):
    if v < 0:
        return 0.0
    n = 0
    while v > 0.0713:
        v = v * w
        n += 1
    return v + n


def types_that_change(x):
    total, count = 0, 0
    for k in range(10):
        total = total + (x[k] if isinstance(total, int) else 2 * x[k])
        count = count + (1 if type(count) is int else 0.5)
        if type(x[k]) is np.float64 and not isinstance(x, list | tuple):
            count += 1
    return total * count


def sizes_of_selections(x):
    chosen = x[x > 0]
    rows = x.reshape(6, 2)[x[::2] > 0.3]
    values = [v * 2 for v in x[:5]]
    values.sort(key=lambda v: -v)
    return np.sum(chosen) / max(chosen.size, 1) + len(rows) * np.sum(rows) + rows.size + values[0] * 3 + values[-1]


def elementwise(x):
    scale = x[0]
    inner = np.vectorize(lambda v: v * scale + math.sin(v), otypes=[float])
    return np.sum(kinked(x, 0.5)) + np.sum(kinked(x[:3, None], [0.3, 0.4])) + np.sum(inner(np.arange(3)))


def few_but_long(x):
    a = np.outer(x[:5], x[:5]) + np.diag(np.arange(1.0, 6))
    for _ in range(6):
        for p in range(4):
            for q in range(p + 1, 5):
                if abs(a[p, q]) > 1e-3:
                    t = 0.1 * a[p, q]
                    j = np.eye(5)
                    j[p, q], j[q, p] = t, -t
                    a = j.T @ a @ j * 0.9
    return np.trace(a) + a[0, 1]


def annotated(x):
    last: float
    if len(x) > 100:
        return x[0]
    total: float = 0.0
    made: np.ndarray = np.zeros(12)
    scaled: list[float] = []
    for k, v in enumerate(x):
        made[k]: float = v * total
        step: float = v if v > 0 else -0.5 * v
        total: float = total + step
        last = step
        scaled.append(last)
    if total > 3:
        size: float = total
    else:
        size: float = last * 2.0
    try:
        factor: float = np.linalg.inv(np.zeros((2, 2)) * x[0])[0, 0]
    except np.linalg.LinAlgError:
        factor: float = 2.0

    def inner(v):
        w: float = v * size
        return w * factor
    return inner(np.sum(made)) + scaled[3]


def dropped(x):
    """`del` of what is not needed any more, in branches and loops."""
    total = 0.0
    for k in range(40):
        wave = np.sin(x) * k
        if wave[0] > 0.2:
            part = wave[1:] * 2.0
            total = total + np.sum(part)
            del part
        else:
            part, other = wave, wave + 1.0
            total = total + part[0] - other[1]
            del part, other
        del wave
    return total


class _Private:
    __scale = 0.5

    def __init__(self, rate):
        self.__rate, self.__seen = rate, []

    def __step(self, x, __power=2):
        made = np.zeros(2)
        made[0] = x ** __power if x > 0 else -x
        self.__seen.append(made[0])
        return made

    @staticmethod
    def __shifted(*, __by):
        return __by + 1.0

    def run(self, x):
        __total = 0.0
        for v in x:
            if v > 1.5:
                break
            __total = __total + np.sum(self.__step(v, 3)) * self.__rate

        def __inner(w):
            nonlocal __total
            __total = __total + (w if w > 0 else 2 * w)
            return [__total * self.__scale for _ in range(2)]

        class Local:
            __value = 3.0

            def get(self):
                return self.__value
        kept = sum(v for v in self.__seen if v > 0.1)
        return sum(__inner(x[1])) + kept + self._Private__shifted(_Private__by=Local().get() * x[2])


class __Hidden(_Private):                          # Python leaves out the underscores in front
    def run(self, x):
        self.__own = x[0] if x[1] > 0 else x[2]
        return super().run(x) * self.__own


def private_names(x):
    return _Private(x[0]).run(x) + __Hidden(x[1]).run(x[:5])


X = np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9, 0.35, 1.7, -0.6, 0.45, 0.15, -0.25])
PROGRAMS = [found_or_not, outer_jumps_of_else, left_in_with_and_try, many_returns, caught_while_tracing, extremes, ordered, truths, numbers,
            concrete_arrays_of_objects, concrete_arrays_at_lists, rows_of_a_mask, products, types_that_change, sizes_of_selections, elementwise, few_but_long,
            annotated, private_names, dropped]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_python(program):
    as_python(program, X, -X, X + 1.0)


def test_loops_with_del_are_recorded():
    assert "loop" in [value.op.name for value in trace(dropped, (X,)).graph.body]


def test_what_is_deleted_has_no_value():
    def read_again(x):
        y = x * 2.0
        if len(x) > 3:
            del y
        return y

    def twice(x):
        for _ in range(12):
            y = x * 2.0
            del y
            x = x + 1.0
        del y  # noqa: F821
        return x

    for program in (read_again, twice):
        with pytest.raises(UnboundLocalError, match="y"):
            program(X)
        with pytest.raises(UnboundLocalError, match="y"):
            bw.jit(program)(X)


def test_a_variable_that_is_only_annotated_is_no_global():
    def program(x):
        if x[0] > 0:
            X: np.ndarray
        return x * X  # noqa: F821

    with pytest.raises(UnboundLocalError, match="X"):
        bw.jit(program)(X)


def test_a_function_of_elements_has_one_type():
    def kinds(x):
        return np.vectorize(lambda v: 0 if v < 0 else v)(x).sum()

    with pytest.raises(TracerBoolError, match="otypes="):
        bw.jit(kinds)(X)
    assert bw.jit(lambda x: np.vectorize(lambda v: 0 if v < 0 else v, otypes="d")(x).sum())(X) == pytest.approx(np.maximum(X, 0).sum())


def density(t, p, kind="dry", n=2):
    factor = 1.0 if kind == "dry" else 2.0
    if t > 0.3:
        return p / t * factor
    return p / (t + 1.0) * factor * n


def polynomial(x, coefficients):
    return sum(c * x ** k for k, c in enumerate(coefficients))


of_elements, with_coefficients = np.vectorize(density), np.vectorize(polynomial, excluded=[1, "coefficients"])


@pytest.mark.parametrize("program", [
    lambda x: of_elements(t=x, p=[[1.0], [2.0]], kind="wet"), lambda x: of_elements(x, 2.5, n=3), lambda x: of_elements(0.4, p=x, kind="dry"),
    lambda x: with_coefficients(x, [1.0, 2.0, 3.0]), lambda x: with_coefficients(0.7, coefficients=x),
    lambda x: np.vectorize(lambda n: n * x[0])(3)],
    ids=["keywords", "a number", "a known one first", "excluded", "traced excluded", "none that varies"])
def test_vectorised_functions_with_keywords_and_excluded_arguments(program):
    def summed(x):
        return np.sum(program(x))

    value, slopes = bw.value_and_grad(summed)(X)
    assert value == pytest.approx(summed(X), rel=1e-12)
    steps = 1e-6 * np.eye(len(X))
    np.testing.assert_allclose(slopes, [(summed(X + step) - summed(X - step)) / 2e-6 for step in steps], rtol=1e-6, atol=1e-7)


def test_a_function_of_one_element_may_have_several_types():
    def kinked(v):
        return 0 if v < 0 else v

    compiled = bw.value_and_grad(lambda x: np.vectorize(kinked)(x) * 2.0)
    for x, expected in ((-1.5, (0.0, 0.0)), (1.5, (3.0, 2.0)), (-0.5, (0.0, 0.0))):
        assert compiled(x) == expected


def test_signatures_of_vectorised_functions_are_refused():
    with pytest.raises(bw.errors.UnsupportedError, match="(?s)np.vectorize with signature=, of traced.*hint: bw.vmap"):
        bw.jit(lambda x: np.vectorize(np.sum, signature="(n)->()")(x))(X)


def test_objects_made_inside_are_nothing_from_outside():
    class Optimiser:
        def __init__(self, w):
            self.w, self.t = w, 0

        def step(self, g):
            self.t += 1
            self.w = self.w - 0.1 * g / self.t

    def trained(x):
        optimiser = Optimiser(x)
        for _ in range(20):
            optimiser.step(2 * optimiser.w)
        return np.sum(optimiser.w)

    assert bw.jit(trained)(X) == pytest.approx(trained(X))                       # without a warning of something stale
    assert not [line for line in bw.jit(trained).explain(X).splitlines() if "is read at every call" in line]


CELL = """import numpy as np
import numpy.linalg as la
def doubled(x):
    y = np.zeros(3)
    while np.sum(y) < 10: y[0] = np.sum(y) + np.abs(x) + la.norm(y - y)
    return y[0]
"""


@pytest.mark.parametrize("whole", [True, False])
def test_cells_of_notebooks_whose_statements_are_compiled_one_by_one(whole):
    """How Python compiles `np.sum(x)` depends on whether the module that is compiled imports np; IPython compiles statements alone."""
    file, names = f"<cell {whole}>", {}
    linecache.cache[file] = (len(CELL), None, CELL.splitlines(keepends=True), file)
    statements = ast.parse(CELL).body
    for body in [statements] if whole else [[statement] for statement in statements]:
        exec(compile(ast.Module(body, []), file, "exec"), names)
    assert bw.grad(names["doubled"])(1.5) == 7.0
