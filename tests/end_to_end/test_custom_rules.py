"""custom_jvp and custom_vjp: nondiff arguments, trees, every transform through them, errors.

Rules here differ from the derivative of the function, so that it shows which one is used.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.errors import GradientError, SignatureError, UnsupportedError

X = np.array([0.5, -1.25, 0.8])
V = np.array([1.0, 0.5, -2.0])


@bw.custom_jvp
def square(x):                                              # by rule: df = 100 x dx
    return x * x


@square.defjvp
def square_jvp(primals, tangents):
    return square(*primals), 100.0 * primals[0] * tangents[0]


@dataclasses.dataclass
class Parameters:
    weight: Any
    bias: Any
    mode: str = "tanh"


# ----- custom_jvp
def test_one_rule_for_both_modes() -> None:
    np.testing.assert_allclose(square(X), X * X)
    out, tangent = bw.jvp(square, (X,), (V,))
    np.testing.assert_allclose(out, X * X)
    np.testing.assert_allclose(tangent, 100 * X * V)
    np.testing.assert_allclose(bw.grad(lambda x: np.sum(square(x) * V))(X), 100 * X * V)
    np.testing.assert_allclose(bw.linearize(square, X)[1](V), 100 * X * V)
    for jacobian in (bw.jacfwd, bw.jacrev, bw.jacobian):
        np.testing.assert_allclose(jacobian(square)(X), np.diag(100 * X))


SECOND = {
    "jvp of jvp": lambda f: lambda x: bw.jvp(lambda y: bw.jvp(f, (y,), (1.0,))[1], (x,), (1.0,))[1],
    "jvp of grad": lambda f: lambda x: bw.jvp(bw.grad(f), (x,), (1.0,))[1],
    "grad of jvp": lambda f: bw.grad(lambda y: bw.jvp(f, (y,), (1.0,))[1]),
    "grad of grad": lambda f: bw.grad(bw.grad(f)),
    "hessian": bw.hessian,
    "hvp": lambda f: lambda x: bw.hvp(f)(x, 1.0),
}


@pytest.mark.parametrize("name", SECOND)
def test_the_derivative_of_the_rule_is_the_second_derivative(name: str) -> None:
    """100 x, differentiated: 100; through square again where the rule calls it."""
    second = SECOND[name]
    assert second(square)(3.0) == 100.0
    np.testing.assert_allclose(second(lambda x: square(square(x)))(2.0), 1e4 * (4.0 + 2.0 * 200.0))       # of 1e4 x f(x)
    np.testing.assert_allclose(bw.vmap(second(square))(X), np.full(3, 100.0))
    np.testing.assert_allclose(bw.jit(second(bw.jit(square)))(3.0), 100.0)


def rounded(kind: str) -> Any:
    """round(3 x), whose rules say that its derivative is x; they compute the primal anew, another one: round(3 x) + x^2, or call it."""
    def anew(x):
        return np.round(3 * x) + x * x if kind.endswith("anew") else made(x)

    if kind.startswith("vjp"):
        made = bw.custom_vjp(lambda x: np.round(3 * x))
        made.defvjp(lambda x: (anew(x), x), lambda x, ct: (ct * x,))
    else:
        made = bw.custom_jvp(lambda x: np.round(3 * x))
        made.defjvp(lambda primals, tangents: (anew(primals[0]), primals[0] * tangents[0]))
    return made


ROUNDED: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {      # a program with f, and its value where f(x) = a + b x + c x^2 near x
    "product": (lambda f: lambda x: f(x) ** 2 * x, lambda f: lambda x: f(x) ** 2 * x),
    "loop": (lambda f: lambda x: bw.scan(lambda c, a: (f(x) * c * a, c), x, np.array([1.0, 2.0, 0.5]))[0], lambda f: lambda x: f(x) ** 3 * x),
    "branch": (lambda f: lambda x: bw.cond(x > 0, lambda x: f(x) * x * x, lambda x: x, x), lambda f: lambda x: f(x) * x * x),
    "checkpoint": (lambda f: lambda x: bw.checkpoint(lambda y: f(y) ** 2)(x) * x, lambda f: lambda x: f(x) ** 2 * x),
    "batch": (lambda f: lambda x: np.sum(bw.vmap(lambda y: f(y) ** 2)(x + np.zeros(3))) * x, lambda f: lambda x: 3 * f(x) ** 2 * x),
}


@pytest.mark.parametrize("kind", ["vjp", "jvp", "vjp anew", "jvp anew"])
@pytest.mark.parametrize("program", ROUNDED)
@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_are_of_what_the_rule_computed(name: str, program: str, kind: str) -> None:
    """The first derivative is g = df/df f' + ..., with f' from the rule; in that program f(x) is what the rule computed in its place."""
    x = 0.7
    made, meant = ROUNDED[program]
    value, slope = (2.0 + x * x, 2 * x) if kind.endswith("anew") else (2.0, x)

    def first(y, part=0.0):                # f is value + slope (y - x) there, and its derivative y, whose derivative is 1
        f, df = value + slope * (y - x), y
        step = 1e-30
        return np.imag(meant(lambda z: f + df * (z - y))(y + step * 1j)) / step

    expected = (first(x + 1e-6) - first(x - 1e-6)) / 2e-6
    assert SECOND[name](made(rounded(kind)))(x) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("count", [3, 40])
@pytest.mark.parametrize("kind", ["vjp", "jvp"])
def test_calls_that_are_the_same_in_all_iterations(kind: str, count: int) -> None:
    """They are moved before the loop, or the loop is unrolled, before the derivative is taken."""
    f = rounded(kind)

    def fun(x: Any) -> Any:
        c = x
        for k in range(count):
            c = c * 0.5 + f(x) + k
        return c

    def scanned(x: Any) -> Any:
        return bw.scan(lambda c, a: (c * 0.5 + f(x) * a, None), x, np.ones(count))[0]

    expected = 0.5 ** count + 0.7 * 2 * (1 - 0.5 ** count)
    for one in (fun, scanned, lambda x: bw.fori_loop(0, count, lambda k, c: c * 0.5 + f(x), x)):
        for derivative in (bw.grad(one)(0.7), bw.jvp(one, (0.7,), (1.0,))[1], bw.jacfwd(one)(0.7), bw.vmap(bw.grad(one))(np.array([0.7]))[0]):
            assert derivative == pytest.approx(expected)


def test_batches_keep_the_rule() -> None:
    batch = np.stack([X, 2 * X])
    np.testing.assert_allclose(bw.vmap(square)(batch), batch**2)
    np.testing.assert_allclose(bw.grad(lambda x: np.sum(bw.vmap(square)(x)))(batch), 100 * batch)
    np.testing.assert_allclose(bw.vmap(bw.grad(lambda x: np.sum(square(x))))(batch), 100 * batch)
    np.testing.assert_allclose(bw.jvp(bw.vmap(bw.vmap(square)), (batch,), (batch,))[1], 100 * batch * batch)
    np.testing.assert_allclose(bw.vmap(bw.jacfwd(bw.jacrev(square)))(batch).shape, (2, 3, 3, 3))


@bw.custom_jvp
def scaled(x, y):                                           # by rule: 3 y dx + 5 x dy
    return x * y


scaled.defjvps(lambda t, out, x, y: 3.0 * t * y, lambda t, out, x, y: 5.0 * x * t)


def test_defjvps_and_arguments_that_do_not_vary() -> None:
    assert bw.grad(scaled, argnums=(0, 1))(2.0, 7.0) == (21.0, 10.0)
    assert bw.jvp(scaled, (2.0, 7.0), (1.0, None))[1] == 21.0
    assert bw.jvp(lambda x: scaled(x, x), (2.0,), (1.0,))[1] == 16.0
    xs = np.arange(3.0)
    gradients = bw.grad(lambda x, y: np.sum(bw.vmap(scaled, in_axes=(0, None))(x, y)), (0, 1))(xs, 7.0)
    np.testing.assert_allclose(gradients[0], np.full(3, 21.0))
    np.testing.assert_allclose(gradients[1], 5.0 * xs.sum())
    np.testing.assert_allclose(bw.vmap(bw.grad(scaled, 1), in_axes=(0, None))(xs, 7.0), 5.0 * xs)


def test_defjvps_without_a_rule_is_zero() -> None:
    @bw.custom_jvp
    def f(x, k):
        return x * k, k + 1

    f.defjvps(lambda t, out, x, k: (2 * t * k, None), None)
    assert bw.jvp(lambda x: f(x, 3)[0], (2.0,), (1.0,))[1] == 6.0
    assert bw.grad(lambda x, k: f(x, k)[0])(2.0, 3) == 6.0
    assert bw.grad(lambda x, k: f(x, k)[0], 1)(2.0, 3.0) == 0.0


def test_a_rule_whose_output_is_computed_anew() -> None:
    """The value may come with the derivative, without calling the function."""
    calls = []

    @bw.custom_jvp
    def f(x):
        calls.append("f")
        return np.sin(x)

    @f.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return np.sin(x), np.cos(x) * t

    assert callable(rule) and abs(bw.grad(f)(0.3) - np.cos(0.3)) < 1e-15
    assert abs(bw.grad(bw.grad(f))(0.3) + np.sin(0.3)) < 1e-15
    assert abs(bw.jvp(bw.grad(bw.grad(f)), (0.3,), (1.0,))[1] + np.cos(0.3)) < 1e-15


def test_arrays_from_outside_of_a_rule() -> None:
    scale = np.array([2.0, 3.0, 4.0])

    @bw.custom_jvp
    def f(x):
        return x * scale

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * scale * scale))
    function = lambda x: np.sum(f(x))
    assert bw.grad(function)(X).tolist() == (scale**2).tolist()
    assert bw.jvp(f, (X,), (V,))[1].tolist() == (scale**2 * V).tolist()
    assert bw.vmap(bw.grad(function))(np.stack([X, X]))[1].tolist() == (scale**2).tolist()


def test_trees() -> None:
    @bw.custom_jvp
    def dense(parameters, x):
        assert parameters.mode == "tanh"
        return {"out": x @ parameters.weight + parameters.bias, "count": np.argmax(x)}

    @dense.defjvp
    def rule(primals, tangents):
        parameters, x = primals
        t, tx = tangents
        assert isinstance(t, Parameters) and t.weight.shape == (3, 2)
        return dense(parameters, x), {"out": 10 * (x @ t.weight) + tx @ parameters.weight, "count": None}

    w = np.arange(6.0).reshape(3, 2)
    gradient = bw.grad(lambda p, x: np.sum(dense(p, x)["out"]), (0, 1))(Parameters(w, np.zeros(2)), X)
    np.testing.assert_allclose(gradient[0].weight, 10 * np.repeat(X[:, None], 2, 1))
    assert gradient[0].bias.tolist() == [0.0, 0.0]
    np.testing.assert_allclose(gradient[1], w.sum(1))
    tangent = bw.jvp(dense, (Parameters(w, np.zeros(2)), X), (None, V))[1]
    np.testing.assert_allclose(tangent["out"], V @ w)
    assert tangent["count"] is None


# ----- arguments without derivatives
@functools.partial(bw.custom_jvp, nondiff_argnums=(0,))
def applied(function, x):
    return function(x)


@applied.defjvp
def applied_jvp(function, primals, tangents):
    return applied(function, *primals), 2.0 * tangents[0]


@bw.custom_vjp(nondiff_argnums=(0, 2))
def power(function, x, n):
    return function(x) ** n


power.defvjp(lambda function, x, n: (power(function, x, n), (x, n)), lambda function, n, residuals, ct: (ct * n * 10.0 + 0.0 * residuals[0],))


def test_nondiff_argnums() -> None:
    assert bw.grad(lambda x: applied(np.sin, x))(0.3) == 2.0
    assert bw.jvp(lambda x: applied(lambda y: y * 3, x), (0.3,), (1.0,)) == (0.8999999999999999, 2.0)
    assert applied(np.negative, 2.0) == -2.0
    assert bw.grad(lambda x: power(lambda y: y + 1, x, 3))(1.0) == 30.0
    assert bw.vmap(bw.grad(lambda x: power(np.sin, x, 2)))(X).tolist() == [20.0] * 3
    assert power(np.sin, x=X, n=2).tolist() == (np.sin(X) ** 2).tolist()
    named = bw.custom_jvp(lambda x, *, n=2: x, nondiff_argnames=())
    named.defjvp(lambda primals, tangents: (named(*primals), tangents[0]))
    with pytest.raises(SignatureError, match="n can be passed by keyword only"):
        named(1.0, n=3)


def test_nondiff_argnames_and_keywords() -> None:
    @bw.custom_jvp(nondiff_argnames="n")
    def f(x, n=2):
        return x**n

    f.defjvp(lambda n, primals, tangents: (f(primals[0], n), n * 100.0 * tangents[0]))
    assert bw.grad(lambda x: f(x, n=3))(2.0) == 300.0
    assert bw.grad(lambda x: f(n=3, x=x))(2.0) == 300.0
    assert f(2.0, n=3) == 8.0


class Layer:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    @bw.custom_jvp(nondiff_argnums=(0,))
    def __call__(self, x):
        return x * self.factor

    @__call__.defjvp
    def _rule(self, primals, tangents):
        return self(*primals), tangents[0] * self.factor * 10


def test_methods() -> None:
    assert bw.grad(lambda x: Layer(3.0)(x))(2.0) == 30.0
    assert Layer(3.0)(2.0) == 6.0


# ----- custom_vjp
def test_cotangents_with_none_inside() -> None:
    @bw.custom_vjp
    def f(p, x):
        return p["w"] * x + p["b"]

    f.defvjp(lambda p, x: (f(p, x), x), lambda x, ct: ({"w": ct * x * 7, "b": None}, None))
    gradient = bw.grad(lambda p, x: np.sum(f(p, x)), (0, 1))({"w": X, "b": X}, V)
    np.testing.assert_allclose(gradient[0]["w"], 7 * V)
    assert not gradient[0]["b"].any() and not gradient[1].any()


# ----- errors
def made(rule: Callable[..., Any]) -> Any:
    @bw.custom_jvp
    def f(x):
        return x * 2.0

    f.defjvp(rule)
    return f


@bw.custom_jvp
def without_rule(x):
    return x


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no rule": (lambda: bw.grad(without_rule)(1.0), GradientError, "without_rule is a custom_jvp without a rule"),
    "no pair": (lambda: bw.grad(made(lambda p, t: t[0]))(1.0), GradientError, r"f: jvp must return a pair \(out, tangent\)"),
    "output": (lambda: bw.grad(made(lambda p, t: ([p[0]], t[0])))(1.0), GradientError, "f: jvp returned an output of"),
    "shape": (lambda: bw.jvp(made(lambda p, t: (p[0] * 2.0, np.sum(t[0]))), (X,), (V,)), GradientError,
              r"f: jvp's tangent has shape \(\), but the output has shape \(3,\)"),
    "dtype": (lambda: bw.jvp(made(lambda p, t: (p[0] * 2.0, t[0].astype(np.float32))), (X,), (V,)), GradientError,
              "f: jvp's tangent has dtype float32, but the output has dtype float64"),
    "structure": (lambda: bw.jvp(made(lambda p, t: (p[0] * 2.0, [t[0]])), (X,), (V,)), GradientError, "does not have the structure of the output"),
    "nonlinear": (lambda: bw.grad(lambda x: np.sum(made(lambda p, t: (p[0] * 2.0, np.clip(t[0], -1, 1)))(x)))(X), GradientError,
                  r"(?s)custom_jvp\(f\): its rule is not a linear function of the tangents.*bw.custom_vjp"),
    "traced from outside": (lambda: bw.grad(lambda y: bw.grad(made(lambda p, t: (p[0] * 2.0, t[0] * y)))(1.0))(2.0), UnsupportedError,
                            "f: jvp reads a traced value from outside"),
    "traced by the function around it, earlier": (
        lambda: bw.grad(lambda y: np.sum(_vjp(lambda r, ct: (ct * y,))(X * y)))(2.0), UnsupportedError, "bwd reads a traced value from outside"),
    "array as nondiff": (lambda: applied(X, X), SignatureError, "an array cannot be static"),
    "traced as nondiff": (lambda: bw.jit(lambda x, n: power(np.sin, x, n[0]))(X, np.ones(1)), SignatureError,
                          "power: argument 2 is named in nondiff_argnums"),
    "no such name": (lambda: bw.custom_jvp(lambda x: x, nondiff_argnames="n"), SignatureError, "nondiff_argnames has 'n'"),
    "bwd": (lambda: bw.grad(lambda x: np.sum(_vjp(lambda r, ct: (ct, ct))(x)))(X), GradientError, "bwd must return a tuple of 1 cotangents"),
    "bwd shape": (lambda: bw.grad(lambda x: np.sum(_vjp(lambda r, ct: (np.sum(ct),))(x)))(X), GradientError,
                  r"bwd's cotangent 0 has shape \(\), but the argument has shape \(3,\)"),
    "defjvps": (lambda: applied.defjvps(None), SignatureError, "defjvps does not go with nondiff_argnums"),
}


def _vjp(bwd: Callable[..., Any]) -> Any:
    f = bw.custom_vjp(lambda x: x * 2.0)
    f.defvjp(lambda x: (f(x), None), bwd)
    return f


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    call, kind, message = ERRORS[case]
    with pytest.raises(kind, match=message):
        call()


def test_a_rule_that_is_not_linear_still_pushes() -> None:
    f = made(lambda p, t: (p[0] * 2.0, np.clip(t[0], -1, 1)))
    assert bw.jvp(f, (X,), (V,))[1].tolist() == [1.0, 0.5, -1.0]


# ----- rules with loops and branches
WEIGHTS = np.array([0.2, 0.3, 0.5])
ROUNDS: dict[str, Any] = {                                               # cos(x) t, made in another way
    "fori_loop": lambda x, t: bw.fori_loop(0, 3, lambda i, s: s + WEIGHTS[i] * np.cos(x) * t, 0 * t),
    "scan": lambda x, t: bw.scan(lambda s, w: (s + w * np.cos(x) * t, s), 0 * t, WEIGHTS)[0],
    "cond": lambda x, t: bw.cond(x[0] > 0, lambda t: np.cos(x) * t, lambda t: np.cos(x) * t + 0 * t, t),
    "nested": lambda x, t: bw.fori_loop(0, 2, lambda i, s: bw.fori_loop(0, 2, lambda j, r: r + np.cos(x) * t / 4, s), 0 * t),
}


def _with_rule(kind: str, product: Any) -> Any:
    if kind == "jvp":
        by_tangents = bw.custom_jvp(np.sin)
        by_tangents.defjvp(lambda primals, tangents: (by_tangents(*primals), product(*primals, *tangents)))
        return by_tangents
    by_cotangents = bw.custom_vjp(np.sin)
    by_cotangents.defvjp(lambda x: (by_cotangents(x), x), lambda x, ct: (product(x, ct),))
    return by_cotangents


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
@pytest.mark.parametrize("name", ROUNDS)
def test_rules_with_loops_in_both_modes(kind: str, name: str) -> None:
    fun = _with_rule(kind, ROUNDS[name])
    x, v = np.array([0.3, -0.5, 1.1]), np.array([1.0, 2.0, -0.5])

    def repeated(x: Any) -> Any:
        return bw.fori_loop(0, 2, lambda i, y: fun(y), x)

    def plain(x: Any) -> Any:
        return np.sin(np.sin(x))

    for ours, expected in ((fun, np.sin), (repeated, plain)):
        np.testing.assert_allclose(bw.grad(lambda x, f=ours: np.sum(f(x)))(x), bw.grad(lambda x, f=expected: np.sum(f(x)))(x), rtol=1e-12)
        np.testing.assert_allclose(bw.jvp(ours, (x,), (v,))[1], bw.jvp(expected, (x,), (v,))[1], rtol=1e-12)
    np.testing.assert_allclose(bw.hessian(lambda x: np.sum(fun(x)))(x), np.diag(-np.sin(x)), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(bw.jacobian(bw.grad(lambda x: np.sum(fun(x))))(x), np.diag(-np.sin(x)), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(bw.vmap(bw.grad(lambda x: np.sum(fun(x))))(np.stack([x, v])), np.cos(np.stack([x, v])), rtol=1e-12)


def test_rules_with_loops_that_are_not_linear_are_refused() -> None:
    fun = _with_rule("jvp", lambda x, t: bw.fori_loop(0, 2, lambda i, s: s * t, t))
    with pytest.raises(GradientError, match="not a linear function"):
        bw.grad(lambda x: np.sum(fun(x)))(np.ones(3))
    fun = _with_rule("jvp", lambda x, t: bw.while_loop(lambda s: np.sum(s) < 3, lambda s: s + np.cos(x) * t, 0 * t))
    with pytest.raises(GradientError, match="not a linear function"):
        bw.grad(lambda x: np.sum(fun(x)))(np.ones(3))


def test_rules_with_while_loops_whose_tests_read_no_tangent_are_transposed() -> None:
    fun = _with_rule("jvp", lambda x, t: bw.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + np.cos(x) * t / 3), (0, 0 * t))[1])
    x = np.linspace(0.0, 1.0, 3)
    np.testing.assert_allclose(bw.grad(lambda x: np.sum(fun(x)))(x), np.cos(x), rtol=1e-12)


def test_errors_of_rules_name_the_call() -> None:
    """Also where the rule is traced or transposed after the function around it."""
    host = bw.primitive(np.sin)
    host.defjvp(lambda primals, tangents: (np.sin(primals[0]), np.cos(primals[0]) * tangents[0]))
    wrong = _vjp(lambda residuals, ct: (np.sum(ct),))

    def loss(f: Any) -> Any:
        def called(x: Any) -> Any:
            y = f(x)                                          # this line
            return np.sum(y)
        return called

    line = 1 + next(k for k, text in enumerate(Path(__file__).read_text().splitlines()) if text.endswith("# this line"))
    for f in (host, wrong):
        for derivative in (bw.grad(loss(f)), bw.jit(bw.grad(loss(f))), lambda x, f=f: bw.compile(loss(f), x).backward(x), bw.hessian(loss(f))):
            with pytest.raises((GradientError, UnsupportedError), match=rf"^\S*test_custom_rules.py:{line}: "):
                derivative(X)
