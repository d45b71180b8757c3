"""What newcomers get wrong first: the message says what to write instead."""

from __future__ import annotations

import array
import logging
import math
import os
import re
import sys
import sysconfig
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.signal

import bwcompiler as bw
from bwcompiler.errors import (
    DerivativeError,
    DTypeError,
    EscapedTracerError,
    GradientError,
    SignatureError,
    StaleValueWarning,
    TracerBoolError,
    TracerError,
    TracerIndexError,
    UnsupportedError,
)
from tests.support.user_errors import raises_at_user_line

X = np.array([1.0, 2.0, 3.0])


def _forgets(x: Any) -> None:
    np.sum(x)


async def _waits(x: Any) -> Any:
    return x


MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: bw.grad(_forgets)(X), GradientError, "_forgets returned nothing that is a number\n  hint: is a `return` missing?"),
    (lambda: bw.grad(lambda x: (np.sum(x), x))(X), GradientError, "it returned shape (), (3,)\n  hint: return one number; has_aux=True for a pair"),
    (lambda: bw.grad(np.sum, X), GradientError, "grad: argnums= is an array; it says which arguments are differentiated, by their positions\n"
                                                "  hint: bw.grad(f)(x), not bw.grad(f, x)"),
    (lambda: bw.jit(lambda x: x + _forgets(x))(X), DTypeError, "hint: None is an argument that was not given, or what a function without `return` gives"),
    (lambda: bw.jit(lambda x: np.add(x, _forgets(x)))(X), DTypeError, "hint: it is an argument that was not given, or what a function without `return` gives"),
    (lambda: bw.jit(lambda x: x(2))(X), TracerError, "hint: x is an array: x[...] is an element of it"),
    (lambda: bw.jit(lambda x: np.max(x, x))(X), TracerError, "np.max(...): the second argument is an axis, not an operand\n  hint: np.maximum(x, x)"),
    (lambda: bw.jit(lambda x: np.stack(x, x))(X), TracerError, "the second argument is an axis, not an operand\n  hint: np.stack([x, x])"),
    (lambda: bw.jit(lambda x: math.sin(x))(X), TypeError, "math.sin takes numbers, not an array of shape (3,)\n  hint: np.sin instead"),
    (lambda: bw.jit(lambda x: x.astype([("a", float)]))(X), DTypeError, "is not supported"),
    (lambda: bw.jit(lambda x: x.astype({"names": ["a"], "formats": ["f8"]}))(X), DTypeError, "hint: a dict of its columns"),
    (lambda: eval("bw.jit(lambda x: x + {})(X)"), TracerError, "what stands here takes no traced values"),          # its text is not at hand
    (lambda: bw.jit(lambda x: np.where(x > 0, x))(X), ValueError, "either both or neither of x and y should be given\n  hint: np.where(condition, a, b)"),
    (lambda: bw.jit(lambda n: n.__iadd__(0.5))(np.arange(3)), DTypeError,
     "hint: make what is written to of dtype float64 (.astype, dtype=), or x = x + y in the place of x += y"),
    (lambda: bw.jit(lambda x: len(x))(1.0), TracerError, "hint: a number has no length: np.size(x), or np.atleast_1d(x)"),
    (lambda: bw.jit(lambda x: np.eye(np.sum(x)))(X), TracerIndexError, "a traced value as a size, axis, range() or list index"),
    (lambda: bw.jit(lambda x: x.sum(dim=0))(X), TypeError, "np.sum has no keyword 'dim'\n  hint: axis="),
    (lambda: bw.jit(lambda x: np.mean(x, keepdim=True))(X), TypeError, "np.mean has no keyword 'keepdim'\n  hint: keepdims="),
    (lambda: bw.jit(lambda x: np.sum(x, axes=0))(X), TypeError, "np.sum has no keyword 'axes'\n  hint: axis="),
    (lambda: bw.jit(lambda x: np.clip(x, low=0))(X), TypeError, "np.clip has no keyword 'low'\n  hint: a_min=, a_max=, out=, min=, max=, where="),
    (lambda: bw.jit(lambda x: np.linalg.norm(x, p=1))(X), TypeError, "np.linalg.norm has no keyword 'p'\n  hint: ord=, axis=, keepdims="),
    (lambda: bw.jit(lambda x: x.view(3, 1))(X), TypeError, "x.view takes a dtype, not 3\n  hint: x.reshape(3, ...)"),
    (lambda: bw.vmap(np.sum(X)), TypeError, "of type float64\n  hint: bw.vmap(f)(x), not bw.vmap(f(x))"),
    (lambda: bw.grad(lambda x, n: x ** n, argnums=1, static_argnums=1)(1.0, 3), GradientError,
     "n is static, a number that is compiled in: it has no derivative\n  hint: leave it out of static_argnums"),
    (lambda: bw.jit(classmethod(lambda cls, x: x)), TypeError, "of type classmethod\n  hint: @classmethod goes above"),
    (lambda: bw.compile(lambda x, y: x * y, X, y=X), TypeError, "compile has no keyword 'y'\n  hint: examples of arguments are passed by position"),
    (lambda: bw.hvp(np.sum)(X), SignatureError, "there is one argument\n  hint: bw.hvp(f)(x, v)"),
    (lambda: bw.jit(lambda x: bw.pure_callback(np.sort, x))(X), SignatureError, "hint: bw.pure_callback(sort, result_spec, a)"),
    (lambda: bw.check_grads(np.abs, (0.0,)), DerivativeError, "hint: at a kink or a jump finite differences are not the derivative: move the point"),
    (lambda: bw.grad(lambda x: x ** 2, holomorphic=True)(1.0), GradientError, "returned float64\n  hint: pass complex numbers"),
    (lambda: bw.grad(np.sum)(array.array("d", [1.0])), GradientError, "nothing in it to differentiate\n  hint: pass np.asarray(x)"),
    (lambda: bw.grad(lambda x, *, y: x * y, 1)(1.0, y=2.0), GradientError, "the call has 1 positional argument\n  hint: argnums=0, or a tuple"),
    (lambda: bw.grad(lambda *, a: a)(a=1.0), GradientError, "hint: derivatives are with respect to positional arguments: pass by position what is"),
    (lambda: bw.grad(np.argmax)(X), GradientError, "it returned int64\n  hint: counts and positions have no derivative"),
    (lambda: bw.grad(lambda x: x, "x")(1.0), GradientError, "hint: argnums= takes positions, not names: 0 is the first argument"),
    (lambda: bw.jit(lambda x, n: x, static_argnums=1)(X, X), SignatureError, "static argument n: static arguments must be hashable Python values; an"),
    (lambda: bw.jit(lambda x, *n: x, static_argnums=1)(X, [2]), SignatureError, "static argument 1: static arguments must be hashable, "
                                                                "got list\n  hint: a tuple"),
    (lambda: bw.jit(lambda x: np.busday_count(x, x))(X), UnsupportedError, "np.busday_count is not supported on traced arrays\n  hint: bw.pure_callback"),
    (lambda: bw.jit(lambda x, mode: x * mode)(X, "sum"), TracerIndexError, "x * mode multiplies a text or another sequence by a traced value"),
    (lambda: bw.jit(lambda x: np.random.gamma(x, 1.0))(X), TracerError, "np.random.gamma(...) draws random numbers with a traced parameter"),
    (lambda: bw.jit(lambda x: np.random.default_rng(0).beta(x, 2.0))(X), TracerError, "hint: draw standard ones outside, pass them"),
    (lambda: bw.jit(lambda x: x.rolling(2))(X), AttributeError, "has no attribute 'rolling', as arrays of NumPy have none\n  hint: data frames"),
    (lambda: bw.jit(_waits)(X), TracerError, "result is of type coroutine"),                  # and no warning that nobody waited for it
]


@pytest.mark.parametrize(("call", "error", "message"), MISTAKES)
def test_mistake(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        call()
    assert message in str(raised.value)


def _without_line() -> None:
    raise UnsupportedError("not in here")


@pytest.mark.parametrize(("fun", "text"), [
    (lambda x: bw.while_loop(lambda y: y, lambda y: y, x), "the condition must give one number"),
    (lambda x: bw.vmap(lambda y, z: y * z)(x, np.ones(4)), "must have one extent"),
    (lambda x: scipy.signal.find_peaks(x), "how many there are is not known"),
    (lambda x: _without_line(), "not in here"),
])
def test_refusals_inside_of_functions_name_their_line(fun: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(bw.errors.BwError) as raised:
        bw.jit(fun)(X)
    first, _, rest = str(raised.value).partition("\n")
    assert first.startswith(f"{__file__}:") and text in rest
    assert f"{__file__}:" not in rest


def test_a_recursion_without_end_shows_the_users_lines() -> None:
    def halved(x: Any) -> Any:
        return x if x < 1 else np.sin(halved(x / 2))

    with pytest.raises(RecursionError) as raised:
        bw.grad(halved)(8.0)
    assert any("a recursion that ends by traced values" in note for note in raised.value.__notes__)
    assert {entry.path.name for entry in raised.traceback} == {Path(__file__).name}


def test_a_recursion_that_adds_runs_as_the_loop_that_it_is() -> None:
    """Simpson's rule, refined where it has to be: as a recursion, and with what is still to do in an array."""
    def rule(a: Any, b: Any, w: Any) -> Any:
        return (b - a) / 6 * (np.sin(w * a * a) + 4 * np.sin(w * ((a + b) / 2) ** 2) + np.sin(w * b * b))

    def refined(a: Any, b: Any, tolerance: Any, w: Any) -> Any:
        m = (a + b) / 2
        better = rule(a, m, w) + rule(m, b, w)
        if abs(better - rule(a, b, w)) < 15 * tolerance:
            return better
        return refined(a, m, tolerance / 2, w) + refined(m, b, tolerance / 2, w)

    def with_array(a: Any, b: Any, tolerance: Any, w: Any) -> Any:
        todo, n, total = np.zeros((1000, 3)), 1, 0.0
        todo[0] = a, b, tolerance
        while n > 0:
            n -= 1
            a, b, tolerance = todo[n]
            m = (a + b) / 2
            better = rule(a, m, w) + rule(m, b, w)
            if abs(better - rule(a, b, w)) < 15 * tolerance:
                total += better
            else:
                todo[n] = a, m, tolerance / 2
                todo[n + 1] = m, b, tolerance / 2
                n += 2
        return total

    for program in (refined, with_array):
        value, slope = bw.value_and_grad(program, 3)(0.0, 2.0, 1e-6, 3.0)
        assert value == pytest.approx(refined(0.0, 2.0, 1e-6, 3.0), rel=1e-12)
        assert slope == pytest.approx((with_array(0.0, 2.0, 1e-6, 3.001) - with_array(0.0, 2.0, 1e-6, 2.999)) / 2e-3, rel=1e-3)


def test_a_recursion_that_data_end_names_its_line() -> None:
    def deeper(x: Any) -> Any:
        if x < 1e-3:
            return x
        return np.hypot(deeper(x / 2), deeper(x / 3))    # here

    with pytest.raises(RecursionError) as raised:
        bw.jit(deeper)(1.0)
    note = "".join(raised.value.__notes__)
    assert re.search(r"test_first_mistakes.py:\d+: return np.hypot\(.*# here\n  a recursion that ends by traced values .*\n  hint: .*an array", note)


@pytest.mark.parametrize("transform", [bw.jit, bw.grad, bw.vmap, bw.jacobian])
def test_arguments_that_the_function_does_not_take_show_the_users_lines(transform: Callable[..., Any]) -> None:
    for args, kwargs in (((X,), {}), ((X, X, X), {}), ((X, X), {"z": X})):
        with pytest.raises(TypeError, match="argument") as raised:
            transform(lambda x, y: np.sum(x * y))(*args, **kwargs)
        assert {entry.path.name for entry in raised.traceback} == {Path(__file__).name}


@pytest.mark.parametrize("fun", [lambda x: x.sum(), lambda x: x * 2.0, lambda x: x ** 2, lambda x: x[0, 0], lambda x: -x])
def test_a_list_is_no_array(fun: Callable[[Any], Any]) -> None:
    for transform in (bw.jit, bw.grad, bw.vmap):
        with pytest.raises((AttributeError, TypeError)) as raised:
            transform(fun)([1.0, 2.0] if transform is not bw.vmap else [X, X])
        assert any("pass np.array(...) of it" in note for note in raised.value.__notes__)
    with pytest.raises(TypeError) as raised:
        bw.jit(lambda x: x + [None])(X)
    assert not hasattr(raised.value, "__notes__")


def test_what_is_written_for_iterators() -> None:
    m = np.arange(6.0).reshape(2, 3)
    assert bw.grad(lambda x: sum(v * v for v in x.ravel()))(m).tolist() == (2 * m).tolist()
    assert bw.grad(lambda x: sum(x[index] * index[1] for index in np.ndindex(x.shape)))(m).tolist() == [[0, 1, 2], [0, 1, 2]]
    assert bw.grad(lambda x: sum(v * index[1] for index, v in np.ndenumerate(x)))(m).tolist() == [[0, 1, 2], [0, 1, 2]]


@pytest.mark.parametrize(("array", "hint"), [
    (np.array([1, None]), "x.astype(float)"), (np.array(["a"]), "np.unique(x, return_inverse=True)"),
    (np.array(["2020"], "M8[D]"), "(t - t[0]) / np.timedelta64(1, 's')"), (np.zeros(2, [("u", "f8")]), "for name in x.dtype.names"),
    (np.ones(2, np.longdouble), "x.astype(np.float64)"), (np.ones(2, np.clongdouble), "x.astype(np.complex128)")])
def test_dtype(array: Any, hint: str) -> None:
    with pytest.raises(DTypeError, match="x: dtype .* is not supported") as raised:
        bw.jit(lambda x: x)(array)
    assert hint in str(raised.value)


# ----- Python on traced values
def test_if_on_a_traced_value() -> None:
    def relu(x):
        if x > 0:
            return x
        return 0.0

    raises_at_user_line(TracerBoolError, lambda: bw.grad(bw.jit(relu, autoloop=False))(1.0), "if x > 0", "np.where")
    assert (bw.grad(relu)(1.0), bw.grad(relu)(-1.0)) == (1.0, 0.0)


def test_while_and_min_on_traced_values() -> None:
    def halve(x):
        while x > 1:
            x = x / 2
        return x

    def plain(fun):
        return bw.jit(fun, autoloop=False)

    raises_at_user_line(TracerBoolError, lambda: plain(halve)(8.0), "while x > 1")
    raises_at_user_line(TracerBoolError, lambda: plain(lambda x: max(x[0], x[1]))(X))
    raises_at_user_line(TracerBoolError, lambda: plain(lambda x: x[0] > 0 and x[1] > 0)(X))
    assert bw.jit(halve)(8.0) == 1.0
    assert bw.jit(lambda x: max(x[0], x[1]))(X) == max(X[0], X[1])
    assert bw.jit(lambda x: x[0] > 0 and x[1] > 0)(X) == (X[0] > 0 and X[1] > 0)


@pytest.mark.parametrize("convert", [float, int, complex, range, math.sin, "{:.2f}".format, np.float64],
                         ids=["float", "int", "complex", "range", "sin", "format", "float64"])
def test_conversions_of_traced_values(convert: Callable[[Any], Any]) -> None:
    raises_at_user_line(TracerError, lambda: bw.jit(lambda x: convert(x[0]), autoloop=False)(X))


def test_assignment_into_a_concrete_array() -> None:
    table = np.zeros(3)

    def fill(x):
        table[0] = x[0]
        return table

    raises_at_user_line(TracerError, lambda: bw.jit(fill)(X), "table[0] = x[0]", "np.zeros_like")
    assert not table.any()


def test_copyto_paths() -> None:
    raises_at_user_line(TracerError, lambda: bw.jit(lambda x: np.copyto(np.zeros(3), x), autoloop=False)(X))
    raises_at_user_line(TracerError, lambda: bw.jit(lambda x: np.add(x, 1.0, out=np.zeros(3)), autoloop=False)(X))


def test_escaped_tracer() -> None:
    kept = []

    def keep(x):
        kept.append(x * 2)
        return x

    with pytest.warns(StaleValueWarning, match="kept keeps traced values"):
        bw.jit(keep)(X)
    with pytest.raises(EscapedTracerError):
        kept[0] + 1
    with pytest.raises(EscapedTracerError):
        bw.jit(lambda x: x + kept[0])(X)


def test_escaped_tracer_in_a_gradient_names_its_line_once() -> None:
    kept = []
    with pytest.warns(StaleValueWarning):
        bw.jit(lambda x: kept.append(x) or x)(X)
    with pytest.raises(EscapedTracerError) as raised:
        bw.grad(lambda x: np.sum(x) * kept[0])(X)
    lines = str(raised.value).splitlines()
    assert lines[0].startswith(f"{__file__}:") and lines[1].startswith("  a traced value is used after")


def test_note_of_a_list_stands_once() -> None:
    with pytest.raises(TypeError) as raised:
        bw.grad(lambda x: np.sum(x ** 2))([1.0, 2.0])
    [note] = raised.value.__notes__
    assert "is a container of arguments" in note


def test_a_traced_value_in_another_thread() -> None:
    def summed(x: Any) -> Any:
        with ThreadPoolExecutor(1) as pool:
            return sum(pool.map(np.sum, [x, x]))

    with pytest.raises(EscapedTracerError, match="a traced value of 'summed' is used in another thread"):
        bw.jit(summed)(X)


def test_loggers_show_traced_values(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("first mistakes")

    def told(x: Any) -> Any:
        log.warning("%s: %.3f of %05d%% %r", "sum", np.sum(x), 100, "text")
        log.log(logging.ERROR, "%(x)8.2e", {"x": x})
        return np.sum(x)

    bw.jit(told)(X)
    where = rf"(<traced f64\[\] from {re.escape(Path(__file__).name)}:\d+>)"
    first, second = [record.getMessage() for record in caplog.records]
    assert re.fullmatch(rf"sum: {where} of 100% 'text'", first) and second == "<traced f64[3]>"
    assert {record.pathname for record in caplog.records} == {__file__}


class Frame:
    """A data frame with a column of texts."""

    columns = ("a", "s")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return np.array([[1.0, "u"]], dtype=object)

    def select_dtypes(self, kind: str) -> Any:
        assert kind == "number"
        found = Frame()
        found.columns = ("a",)
        return found


def test_frame_with_texts() -> None:
    with pytest.raises(DTypeError, match=r"d: a frame with columns that are not numbers: 's'\n  hint: pass frame.select_dtypes\('number'\)"):
        bw.jit(lambda x, d: x)(X, Frame())


def test_breakpoint_stops_in_the_users_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def look() -> None:
        frame = sys._getframe(1)
        seen.append((frame.f_code.co_filename, frame.f_code.co_name, repr(frame.f_locals["y"])))

    def in_a_loop(x: Any) -> Any:
        for k in range(3):
            y = np.sin(x) * k
            breakpoint()
        return np.sum(y)

    monkeypatch.setattr(sys, "breakpointhook", look)
    bw.grad(in_a_loop)(X)
    assert {(file, name) for file, name, _ in seen} == {(__file__, "in_a_loop")} and "<traced f64[3]" in seen[0][2]


def test_set_trace_of_a_debugger_stops_in_the_users_frame() -> None:
    space: dict[str, Any] = {"sys": sys, "seen": []}
    text = "def set_trace():\n    seen.append(sys._getframe(1).f_code.co_name)"
    exec(compile(text, os.path.join(sysconfig.get_path("purelib"), "debugger", "core.py"), "exec"), space)

    def stopping(x: Any) -> Any:
        space["set_trace"]()
        return np.sum(x)

    bw.grad(stopping)(X)
    assert set(space["seen"]) == {"stopping"}


def test_containers_that_a_program_was_not_compiled_for_are_told() -> None:
    of_array, of_dict = bw.compile(lambda x: np.sum(x), X), bw.compile(lambda d, y: np.sum(d["a"]) * d["b"][0] * y, {"a": X, "b": (1.0, 2.0)}, 2.0)
    for call, found, expected, hint in (
            (lambda: of_array([1.0, 2.0]), "argument 0 is [*, *] (* for", "for an array or a number\n", "np.asarray"),
            (lambda: of_array.backward(None), "argument 0 is None", "for an array or a number\n", "bw.compile again"),
            (lambda: of_dict(X, 2.0), "argument 0 is an array or a number", "for {'a': *, 'b': (*, *)} (*", "bw.jit"),
            (lambda: of_dict({"a": X, "b": (1.0, 2.0)}, [2.0]), "argument 1 is [*]", "for an array or a number\n", "np.asarray")):
        with pytest.raises(bw.errors.SignatureError) as raised:
            call()
        assert all(part in str(raised.value) for part in (found, expected, hint)) and "PyTreeSpec" not in str(raised.value), raised.value
