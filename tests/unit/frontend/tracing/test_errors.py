"""What cannot be traced: every row of the table of hints, escaped tracers, unsupported functions and keywords.

The first line of a message is the user's own line (this file's), and the message says what to write instead.
"""

from __future__ import annotations

import math
import os
import re
import sysconfig
import threading
import traceback
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import scipy.spatial.distance
import scipy.special
import scipy.stats
from numpy._core.overrides import array_function_dispatch
from scipy import integrate, interpolate, optimize

import bwcompiler as bw
import bwcompiler.numpy as bnp
from bwcompiler import errors
from bwcompiler.frontend import trace
from bwcompiler.frontend.tracing.refusals import foreign_attributes

A = np.ones(3)


@array_function_dispatch(lambda x: (x,), module="numpy")
def polyvals(x: Any) -> Any:
    """A function of some other version of NumPy."""
    return x


Row = tuple[Callable[[Any], Any], type[Exception], str]

HINTS: dict[str, Row] = {
    "if": (lambda x: 1 if x[0] > 0 else 2, errors.TracerBoolError, "np.where"),
    "while": (lambda x: _while(x), errors.TracerBoolError, "bw.while_loop"),
    "and": (lambda x: x[0] > 0 and x[1] > 0, errors.TracerBoolError, "hint: (x[0] > 0) & (x[1] > 0)"),
    "or": (lambda x: x[0] > 0 or x[1] > 0, errors.TracerBoolError, "hint: (x[0] > 0) | (x[1] > 0)"),
    "not": (lambda x: not x[0], errors.TracerBoolError, "np.logical_not(x[0])"),
    "chain": (lambda x: 0 < x[0] < 1, errors.TracerBoolError, "hint: (0 < x[0]) & (x[0] < 1)"),
    "assert": (lambda x: _asserted(x), errors.TracerBoolError, "numbers are checked before the call"),
    "raise": (lambda x: _raising(x), errors.TracerBoolError, "numbers are checked before the call"),
    "max": (lambda x: max(x[0], x[1]), errors.TracerBoolError, "hint: np.maximum(x[0], x[1])"),
    "min of an array": (lambda x: min(x), errors.TracerBoolError, "hint: np.min(x)"),
    "max of three": (lambda x: max(x[0], x[1], 0.0), errors.TracerBoolError, "hint: bwcompiler.numpy.max([x[0], x[1], 0.0])"),
    "any": (lambda x: any(x > 0), errors.TracerBoolError, "hint: np.any(x > 0)"),
    "sorted": (lambda x: sorted(x), errors.TracerBoolError, "hint: np.sort(x)"),
    "bool": (lambda x: bool(x[0]), errors.TracerBoolError, "leave the bool() away"),
    "scipy.stats.norm.cdf of a number": (lambda x: scipy.stats.norm.cdf(x[0]), errors.TracerBoolError, "bwcompiler.scipy.stats.norm.cdf"),
    "scipy.stats.norm.logpdf": (lambda x: scipy.stats.norm.logpdf(x), errors.TracerArrayError, "bwcompiler.scipy.stats.norm.logpdf"),
    "np.mean of a list": (lambda x: np.mean([x[0], x[1]]), errors.TracerError, "hint: bwcompiler.numpy.mean([x[0], x[1]])"),
    "np.max of a list": (lambda x: np.max([x[0], x[1]]), errors.TracerBoolError, "hint: bwcompiler.numpy.max([x[0], x[1]])"),
    "np.std of objects": (lambda x: np.std(np.array([x[0], x[1]])), errors.TracerError, "make it with bwcompiler.numpy.array([...])"),
    "mean of objects": (lambda x: np.array([x[0], x[1]]).mean(), errors.TracerError, "make it with bwcompiler.numpy.array([...])"),
    "np.sort of objects": (lambda x: np.sort(np.array([x[0], x[1]])), errors.TracerBoolError, "bwcompiler.numpy.array([...])"),
    "A.fill": (lambda x: np.ones(3).fill(x[0]), errors.TracerError, "hint: bwcompiler.numpy.full(n, x[0])"),
    "% of a traced number": (lambda x: "%.3f" % x[0], errors.TracerError, "an f-string"),    # noqa: UP031
    "math.dist": (lambda x: math.dist(x, x), errors.TracerError, "np.linalg.norm"),
    "np.r_": (lambda x: np.r_[x, 1.0], errors.TracerArrayError, "hint: bwcompiler.numpy.r_[x, 1.0]"),
    "A[mask]": (lambda x: np.eye(3)[x > 0], errors.TracerArrayError, "hint: where it is reduced, bwcompiler.numpy.array(np.eye(3))[x > 0]"),
    "np.float32": (lambda x: np.float32(x), errors.TracerArrayError, "hint: x.astype(np.float32)"),
    "np.ndenumerate": (lambda x: list(np.ndenumerate(x)), errors.TracerArrayError, "for index in np.ndindex(x.shape), and x[index]"),
    "np.polynomial": (lambda x: np.polynomial.polynomial.polyval(2.0, x), errors.TracerArrayError, "with NumPy's functions"),
    "sparse": (lambda x: scipy.sparse.eye(3, format="csr") @ x, errors.TracerArrayError, "np.bincount(rows, data * x[columns], minlength=n)"),
    "ufunc of another library": (lambda x: x.__array_ufunc__(SimpleNamespace(__name__="k", signature=None), "__call__", x), errors.UnsupportedError,
                                 "call the Python function behind it"),
    "frompyfunc": (lambda x: np.frompyfunc(lambda t: t, 1, 1)(x), errors.UnsupportedError, "call the function on the array itself"),
    "if array": (lambda x: 1 if x.any() else 2, errors.TracerBoolError, "bw.cond"),
    "if array of several": (lambda x: 1 if x > 0 else 2, errors.TracerBoolError,
                            "if: an array of more than one element has no truth value, as in NumPy\n  hint: .any() or .all() of it; np.where"),
    "and of arrays": (lambda x: x > 0 and x < 2, errors.TracerBoolError, "hint: .any() or .all() of it; (x > 0) & (x < 2)"),
    "in": (lambda x: 1.0 in x, errors.TracerBoolError, "np.any"),
    "float": (lambda x: float(x[0]), errors.TracerError, "drop the float"),
    "math.sin": (lambda x: math.sin(x[0]), errors.TracerError, "np.sin instead of math.sin"),
    "math.gamma": (lambda x: math.gamma(x[0]), errors.TracerError, "bwcompiler.scipy.special.gamma instead of math.gamma"),
    "np.float64": (lambda x: np.float64(x[0]), errors.TracerError, "x.astype(np.float64)"),
    "complex": (lambda x: complex(x[0]), errors.TracerError, "drop the complex"),
    "int": (lambda x: int(x[0]), errors.TracerIndexError, "x.astype(int)"),
    "range": (lambda x: range(x.argmax()), errors.TracerIndexError, "bw.fori_loop"),
    "array at a traced position": (lambda x: np.eye(3)[x.argmax()], errors.TracerIndexError, "bwcompiler.numpy.take(np.eye(3), x.argmax(), axis=0)"),
    "list index": (lambda x: [1, 2, 3][x.argmax()], errors.TracerIndexError, "index an array instead of a list"),
    "shape": (lambda x: np.zeros(x.argmax()), errors.TracerIndexError, "pass the number as a Python int"),
    "reshape": (lambda x: x.reshape(x.argmax(), -1), errors.TracerIndexError, "pass the number as a Python int"),
    "np.asarray": (lambda x: np.asarray(x), errors.TracerArrayError, "leave np.asarray away where the argument is an array already"),
    "np.asarray of a list": (lambda x: np.asarray([x, x]), errors.TracerArrayError, "bwcompiler.numpy.asarray([x, x])"),
    "np.array": (lambda x: np.array(x), errors.TracerArrayError, "np.copy(x), or bwcompiler.numpy.array(x)"),
    "np.array of arrays": (lambda x: np.array([x, 2 * x]), errors.TracerArrayError, "np.stack([x, 2 * x])"),
    "A[...] = x": (lambda x: A.__setitem__(slice(None), x), errors.TracerArrayError, "np.zeros_like(x)"),
    "A[0] = x": (lambda x: A.__setitem__(0, x[0]), errors.TracerError, "assigns a traced value to a concrete array"),
    "A[0] = x, as a statement": (lambda x: _assigned(x), errors.TracerError, "A[0] = ... assigns a traced value"),
    "A[1:] = x, as a statement": (lambda x: _part_assigned(x), errors.TracerArrayError, "if A is an array, make it with np.zeros_like(x)"),
    "np.eye(10)[y]": (lambda x: np.eye(9)[x.argsort()], errors.TracerArrayError, "bwcompiler.numpy.take(np.eye(9), x.argsort(), axis=0)"),
    "np.take(A, y)": (lambda x: np.take(np.eye(3), x.argsort(), axis=0), errors.TracerArrayError,
                      "bwcompiler.numpy.take(np.eye(3), x.argsort(), axis=0)"),
    "A[y, 0]": (lambda x: np.eye(3)[x.argsort(), 0], errors.TracerArrayError, "bwcompiler.numpy.array(np.eye(3))[x.argsort(), 0]"),
    "A.dot": (lambda x: A.dot(x), errors.TracerArrayError, "A @ x"),
    "np.vectorize": (lambda x: np.vectorize(lambda t: t + 1)(x), errors.TracerArrayError, "hint"),
    "np.piecewise": (lambda x: np.piecewise(A, [A > 0], [x]), errors.TracerArrayError, "hint"),
    "np.full": (lambda x: np.full(3, x), errors.TracerArrayError, "bwcompiler.numpy.full(3, x)"),
    "np.arange": (lambda x: np.arange(x[0]), errors.TracerError, "hint"),
    "np.full_like(A, x)": (lambda x: np.full_like(A, x), errors.TracerArrayError, "copied into a concrete array"),
    "np.copyto(A, x)": (lambda x: np.copyto(A, x), errors.TracerArrayError, "np.zeros_like(x)"),
    "out=A": (lambda x: np.sin(x, out=np.empty(3)), errors.TracerArrayError, "out= is a concrete array"),
    "A += x": (lambda x: _augmented(x), errors.TracerArrayError, "hint: local = local + ..."),
    "as_strided": (lambda x: np.lib.stride_tricks.as_strided(x, (9, 9), (8, 8)), errors.BwError, "sliding_window_view(x, n)[::step]"),
    "np.add.at(A)": (lambda x: np.add.at(A, [0], x[:1]), errors.TracerArrayError, "np.zeros_like"),
    "scipy.linalg": (lambda x: scipy.linalg.norm(x), errors.TracerArrayError, "bwcompiler.scipy.linalg.norm"),
    "a function that SciPy made": (lambda x: interpolate.CubicSpline(np.arange(4.0), np.arange(4.0) ** 2 + 1.0)(x), errors.TracerArrayError,
                                   "bwcompiler.scipy.interpolate.CubicSpline"),
    "a number for SciPy's C code": (lambda x: integrate.quad(lambda t: t * x[0], 0.0, 1.0), errors.TracerError, "bwcompiler.scipy.integrate.quad"),
    "a solver of SciPy's": (lambda x: optimize.brentq(lambda t: t - x[0], 0.0, 9.0), errors.TracerError, "bwcompiler.scipy.optimize.brentq"),
    "a program of SciPy's": (lambda x: integrate.solve_ivp(lambda t, y: -x[0] * y, (0.0, 1.0), [1.0]), errors.TracerError,
                             "bwcompiler.scipy.integrate.solve_ivp"),
    "cdist": (lambda x: scipy.spatial.distance.cdist(x[:, None], x[:, None]), errors.TracerArrayError, "(x[:, None] - y[None]) ** 2"),
    "scipy without advice": (lambda x: scipy.spatial.cKDTree(x), errors.TracerArrayError, "outside of the traced function"),
    "scipy.special ufunc": (lambda x: scipy.special.kelvin(x), errors.UnsupportedError, "scipy.special.kelvin has no loop for real numbers alone"),
    "scipy.special.logsumexp": (lambda x: scipy.special.logsumexp(x), errors.TracerArrayError, "bwcompiler.scipy"),
    "hash": (lambda x: {x: 1}, errors.TracerError, "static_argnums"),
    "item": (lambda x: x[0].item(), errors.TracerArrayError, "as it is"),
    "tolist": (lambda x: x.tolist(), errors.TracerArrayError, "iterate"),
    "np.save": (lambda x: np.save("x.npy", x), errors.UnsupportedError, "return the array from the function"),
    "method": (lambda x: x.tobytes(), errors.UnsupportedError, "ndarray.tobytes"),
    "unsupported": (lambda x: np.is_busday(x), errors.UnsupportedError, "np.is_busday is not supported"),
    "nearest": (lambda x: polyvals(x), errors.UnsupportedError, "nearest supported: polyval"),
    "method with a hint": (lambda x: x.resize(3), errors.UnsupportedError, "np.append"),
    "quotient of polynomials": (lambda x: np.polydiv(x, x), errors.UnsupportedError, "q[k] = r[k] / v[0]"),
    "unsupported ufunc": (lambda x: np.isnat(x), errors.UnsupportedError, "np.isnat"),
    "ufunc method": (lambda x: np.less.reduce(x), errors.UnsupportedError, "np.less.reduce"),
    "keyword": (lambda x: np.sort(x, order="a"), errors.UnsupportedError, "order='a'"),
    "keyword value": (lambda x: np.linalg.qr(np.outer(x, x), "raw"), errors.UnsupportedError, "mode='raw'"),
    "ufunc keyword": (lambda x: np.add(x, x, signature="dd->d"), errors.UnsupportedError, "signature="),
    "where without out": (lambda x: np.add(x, x, where=x > 0), errors.UnsupportedError, "np.where"),
    "shapes": (lambda x: x + np.ones(4), errors.ShapeError, "could not be broadcast together with shapes (3,) (4,)"),
    "matmul shapes": (lambda x: x @ np.ones((4, 2)), errors.ShapeError, "inner extents 3 and 4 differ"),
    "reshape size": (lambda x: x.reshape(2, 2), errors.ShapeError, "cannot reshape array of shape (3,) into shape (2, 2)"),
    "dtype": (lambda x: x & 1, errors.DTypeError, "bitwise_and"),
    "np.array of integers, written to": (lambda x: _mixed(x.argsort()), errors.DTypeError, "bwcompiler.numpy.array"),
    "boolean subtract": (lambda x: (x > 0) - (x > 1), errors.DTypeError, "boolean subtract"),
    "float16": (lambda x: np.linalg.inv(np.outer(x, x).astype(np.float16)), errors.DTypeError, "x.astype(np.float32)"),
    "where= of numbers": (lambda x: np.sum(x, where=np.array([1, 0, 1])), errors.DTypeError, "where= must be boolean"),
    "in place cast": (lambda x: _narrow(x), errors.DTypeError, "same_kind"),
    "object": (lambda x: x + np.array(["a", "b", "c"]), errors.DTypeError, "dtype <U1"),
    "output": (lambda x: {"a": "text"}, errors.TracerError, "result['a'] is of type str"),
    "x.shape = ...": (lambda x: setattr(x, "shape", (3, 1)), errors.UnsupportedError, "x = x.reshape(...)"),
    "pickle": (lambda x: __import__("pickle").dumps(x), errors.TracerError, "pickled"),
}


def _while(x: Any) -> Any:
    while x[0] > 0:
        x = x - 1
    return x


def _asserted(x: Any) -> Any:
    assert x[0] > 0
    return x


def _raising(x: Any) -> Any:
    if not np.all(x > 0):
        raise ValueError
    return x


def _assigned(x: Any) -> Any:
    A[0] = x[0]


def _part_assigned(x: Any) -> Any:
    A[1:] = x[1:]


def _mixed(x: Any) -> Any:
    y = np.array([x[0], x[1]])
    y[0] = 1.9
    return y + x[0]


def _augmented(x: Any) -> Any:
    local = np.ones(3)
    local += x
    return local


def _narrow(x: Any) -> Any:
    n = np.zeros_like(x, dtype=int)
    n += x
    return n


@pytest.mark.parametrize("name", HINTS)
def test_hint(name: str) -> None:
    fun, kind, hint = HINTS[name]
    with pytest.raises(kind) as caught:
        trace(fun, (np.ones(3),), autoloop=False)         # captured from source, many of these work
    message = str(caught.value)
    assert hint in message.partition("\n")[2], message
    if name != "output":
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert not any("/bwcompiler/frontend/" in frame.filename for frame in frames[4:]), frames
        assert message.startswith(f"{__file__}:"), message
        assert message.count(f"{__file__}:") == 1, message          # the line is said once, not by every function it passes
        first = message.splitlines()[0]
        assert "lambda" in first or any(text in first for text in ("while x", "local += x", "n += x", "assert x", "if not np", "] = x[", "y + x")), message


@pytest.mark.parametrize(("fun", "kind"), [
    (lambda x: x.sum(axis=3), np.exceptions.AxisError),
    (lambda x: np.transpose(x, (0, 1)), ValueError),
    (lambda x: len(x[0]), TypeError),
    (lambda x: iter(x[0]), TypeError),
    (lambda x: x.nothing, AttributeError),
    (lambda x: x + {}, TypeError),
    (lambda x: np.zeros_like(x[:0]).max(), ValueError),
    (lambda x: np.uint8(3) * x.astype(np.uint8) + 300, OverflowError),
])
def test_numpy_errors_stay(fun: Callable[[Any], Any], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        trace(fun, (np.ones(3),))


def test_error_of_the_user_propagates() -> None:
    def fun(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        trace(fun, (np.ones(3),))


def test_lines_of_installed_packages_are_not_the_users() -> None:
    file = os.path.join(sysconfig.get_path("purelib"), "frames", "apply.py")
    space: dict[str, Any] = {}
    exec(compile("def apply(function, x):\n    return function(x)\ndef add(x):\n    return x + 'text' if x.ndim > 1 else x.item()\n",
                 file, "exec"), space)
    with pytest.raises(errors.TracerArrayError, match=re.escape(f"{__file__}:")):
        trace(lambda x: space["add"](x), (np.ones(3),))
    with pytest.raises(errors.TracerArrayError, match=re.escape(f"{file}:4")):              # there is no better line
        trace(space["add"], (np.ones(3),))


def installed(package: str, text: str) -> dict[str, Any]:
    """The names of a module of an installed package, which is not the user's code."""
    space: dict[str, Any] = {"np": np, "__name__": f"{package}.core"}
    exec(compile(text, os.path.join(sysconfig.get_path("purelib"), package, "core.py"), "exec"), space)
    return space


class Column:
    """A column of a data frame, of which only the operators are those of pandas."""

    __array_ufunc__ = None
    __mul__ = installed("pandas", "def multiply(self, other):\n    return np.asarray(other)")["multiply"]

    def to_numpy(self) -> Any:
        return np.ones(3)


def test_data_frames_meet_traced_arrays() -> None:
    frame = {"a": Column()}
    with pytest.raises(errors.TracerArrayError, match=r"frame\['a'\] \* x is computed by pandas, which makes a concrete array of a traced one.*\n"
                                                      r"  hint: take the arrays out first, frame\[name\].to_numpy\(\)"):
        trace(lambda x: frame["a"] * x, (np.ones(3),))
    with pytest.raises(IndexError, match="not 'a'\n  hint: data frames and records are arrays in here; pass their columns in a dict"):
        trace(lambda x: x["a"], (np.ones(3),))
    with pytest.raises(errors.TracerError, match="result is of type Column; .*\n  hint: return its array, .to_numpy"):
        trace(lambda x: Column(), (np.ones(3),))
    with pytest.raises(errors.TracerError, match="result is of type Plain; .*\n  hint: make Plain a dataclass, or register it"):
        trace(lambda x: type("Plain", (), {})(), (np.ones(3),))


def test_masked_arrays() -> None:
    for fun in (lambda x: np.ma.masked_invalid(x).sum(), lambda x: np.ma.array(x, mask=x > 0).mean(), lambda x: np.ma.mean(x)):
        with pytest.raises(errors.TracerArrayError, match=r"makes a masked array of a traced one.*\n  hint: the mask by itself, good = np.isfinite"):
            bw.jit(fun, autoloop=False)(np.array([1.0, np.nan]))


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_matrices() -> None:
    for fun, array in ((lambda x: np.asmatrix(x).T, r"np.atleast_2d\(x\)"), (lambda x: np.bmat([[x, x]]), r"np.block\(\[\[x, x\]\]\)")):
        with pytest.raises(errors.TracerArrayError, match=rf"\n  hint: {array}, an array: A @ B for the product A \* B of matrices"):
            trace(fun, (np.ones((2, 2)),))


def test_slices_with_traced_bounds() -> None:
    for fun, last in ((lambda x, i: x[i:i + 2], 2), (lambda x, i: A[i:i + 2], 7), (lambda x, i: x[:i], 1)):
        with pytest.raises(errors.TracerError, match=r"a slice with a traced bound: .*\n  hint: return x\[start \+ np.arange\(n\)\], where n"):
            bw.vmap(fun, in_axes=(None, 0))(np.ones(3), np.array([0, last]))
    assert bw.vmap(lambda x, i: x[i:i + 2], in_axes=(None, 0))(np.arange(3.0), np.array([0, 1])).tolist() == [[0, 1], [1, 2]]
    assert bw.vmap(lambda x, i: x[i:i + 2].sum(), in_axes=(None, 0))(np.arange(3.0), np.array([0, 2])).tolist() == [1, 2]
    assert bw.vmap(lambda x, i: x[i + np.arange(2)], in_axes=(None, 0))(np.arange(3.0), np.array([0, 1])).tolist() == [[0, 1], [1, 2]]


def test_hints_are_about_what_is_called_not_about_its_name() -> None:
    f = installed("scipy", "def f(x):\n    return float(x)")["f"]
    f.__module__ = "scipy.stats._distributions"
    with pytest.raises(errors.TracerError, match="hint: bwcompiler.scipy.stats.f$|hint: bwcompiler.scipy.stats.f\n"):
        trace(lambda x: f(x[0]), (np.ones(3),), autoloop=False)
    f.__module__ = "mine"
    for name in ("f", "solve", "norm"):
        f.__name__ = name
        with pytest.raises(errors.TracerError, match="hint: write it with NumPy's functions, or call f outside of the traced function"):
            trace(lambda x: f(x[0]), (np.ones(3),), autoloop=False)
    integral = scipy.integrate.quad
    with pytest.raises(errors.TracerError, match="hint: bwcompiler.scipy.integrate.quad"):
        trace(lambda x: integral(lambda t: t, 0.0, x[0]), (np.ones(3),), autoloop=False)


@pytest.mark.parametrize("name", foreign_attributes.INSTEAD)
def test_attributes_of_other_libraries_arrays(name: str) -> None:
    assert not hasattr(np.zeros(3), name)
    with pytest.raises(AttributeError) as caught:
        trace(lambda x: getattr(x, name), (np.ones(3),))
    assert str(caught.value).startswith(f"{__file__}:") and "  hint: " in str(caught.value)
    trace(lambda x: x * hasattr(x, name), (np.ones(3),))


def test_the_hints_of_conversions_work() -> None:
    x = np.array([2.0, 0.0, 1.0])
    for written in (lambda x: bnp.take(np.eye(3), x.argsort(), axis=0), lambda x: bnp.array(np.eye(3))[x.argsort(), 0],
                    lambda x: bnp.full(3, x), lambda x: np.copy(x), lambda x: bnp.array([x, 2 * x]), lambda x: A @ x,
                    lambda x: bnp.mean([x[0], x[1]]), lambda x: bnp.max([x[0], x[1], 0.0]), lambda x: bnp.r_[x, 1.0], lambda x: np.min(x),
                    lambda x: (x > 0) & (x < 1), lambda x: bnp.array(np.eye(3))[x > 0].sum(), lambda x: np.logical_not(x[0]),
                    lambda x: np.bincount(np.array([0, 0, 1]), np.array([1.0, 2.0, 3.0]) * x[np.array([0, 1, 2])], minlength=2),
                    lambda x: np.sqrt(np.sum((x[:, None] - x[None]) ** 2, -1)), lambda x: bnp.piecewise(A, [A > 0], [x])):
        np.testing.assert_array_equal(bw.jit(written)(x), written(x))


def test_arrays_of_traced_numbers_that_numpy_refuses() -> None:
    for fun in (lambda x: np.linalg.inv(np.array([[x[0], 0.0], [0.0, x[1]]])), lambda x: np.isnan(np.array([x[0], x[1]])),
                lambda x: np.interp(0.5, [0.0, 1.0], [x[0], x[1]])):
        with pytest.raises(TypeError) as caught:
            trace(fun, (np.ones(3),), autoloop=False)
        assert any("make it with bwcompiler.numpy.array([...])" in note for note in caught.value.__notes__)


KEPT: list[Any] = []


UNREAD = {  # function bodies without source: what they raise, and parts of the message
    "while": ("while x < 10.0: x = x * 2\n    return x", errors.TracerBoolError, "if or while: the truth of a traced value"),
    "if": ("if x > 1.0: return x\n    return -x", errors.TracerBoolError, "hint: np.where"),
    "assignment": ("y = np.zeros(3)\n    y[0] = x\n    return y.sum()", errors.TracerError, "bwcompiler.numpy.zeros"),
    "range": ("return sum([1.0 for _ in range(x)])", errors.TracerIndexError, "bw.fori_loop"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_functions_without_source_are_told_so(name: str) -> None:
    body, kind, part = UNREAD[name]
    names: dict[str, Any] = {"np": np}
    exec(f"def f(x):\n    {body}", names)
    with pytest.raises(kind) as caught:
        bw.grad(names["f"])(1.5)
    message = str(caught.value)
    assert message.startswith("<string>:") and part in message and "note: the text of this function is not at hand" in message, message
    with pytest.raises(errors.TracerIndexError) as caught:                        # which those with source are not
        bw.jit(lambda x: np.zeros(x.sum()))(np.ones(3))
    assert "not at hand" not in str(caught.value)


def _filled(x: Any) -> Any:
    y = np.zeros(3)
    y[0] = x
    return y.sum()


def test_what_functions_without_source_call_is_told_so() -> None:
    names: dict[str, Any] = {"filled": _filled}
    exec("def outer(x):\n    return filled(x) + 1.0", names)
    with pytest.raises(errors.TracerError, match=r"test_errors.py:\d+: y\[0\] = x(?s:.*)the text of outer\(\), which led to this call, is not"):
        bw.grad(names["outer"])(1.5)
    exec("import bwcompiler as bw\nvalue = bw.grad(filled)(1.5)", names)          # who calls the compiled function is no part of it
    assert names["value"] == 1.0
    with pytest.raises(errors.TracerIndexError) as caught:
        exec("bw.jit(sized)(np.ones(3))", {"bw": bw, "np": np, "sized": _sized})
    assert "not at hand" not in str(caught.value)


def _sized(x: Any) -> Any:
    return np.zeros(x.sum())


def test_functions_whose_variables_others_see_are_told_so() -> None:
    def by_eval(x: Any) -> Any:
        return x * eval("2") if x > 0 else x

    def by_locals(x: Any) -> Any:
        made = np.zeros(2)
        made[0] = x
        return made[0] * len(locals())

    for function, name, kind in ((by_eval, "eval", errors.TracerBoolError), (by_locals, "locals", errors.TracerError)):
        with pytest.raises(kind, match=rf"test_errors.py(.|\n)*note: .* since it calls {name}\(\).*another function"):
            bw.jit(function)(1.5)


def test_escaped_tracer() -> None:
    def leak(x: Any) -> Any:
        KEPT.append(x * 2)
        KEPT.append(x)
        return x

    with pytest.warns(errors.StaleValueWarning, match="KEPT keeps traced values"):
        trace(leak, (np.ones(3),))
    product, argument = KEPT[-2:]
    for use in (lambda t: t + 1, lambda t: np.sin(t), lambda t: t[0], lambda t: t.sum(), lambda t: bool(t), lambda t: np.sum(t)):
        with pytest.raises(errors.EscapedTracerError, match="'leak'") as caught:
            use(product)
        assert "KEPT.append(x * 2)" in str(caught.value)
        with pytest.raises(errors.EscapedTracerError, match="an argument of leak"):
            use(argument)
    with pytest.raises(errors.EscapedTracerError, match="KEPT.append"):
        trace(lambda y: y + product, (np.ones(3),))
    with pytest.raises(errors.EscapedTracerError):
        trace(lambda y: product, (np.ones(3),))


def test_tracer_of_another_thread() -> None:
    found: list[Exception] = []

    def work(x: Any) -> None:
        try:
            x + 1
        except errors.EscapedTracerError as error:
            found.append(error)

    def fun(x: Any) -> Any:
        thread = threading.Thread(target=work, args=(x,))
        thread.start()
        thread.join()
        return x

    trace(fun, (np.ones(3),))
    assert len(found) == 1


@pytest.mark.parametrize(("argument", "message"), [
    ("text", "result is of type str"), ({"w": object()}, r"result\['w'\] is of type object"), (iter([1.0]), "an iterator is used up"),
    (np.ones(2, np.longdouble), "x: dtype float128|x: dtype longdouble"), (np.ma.ones(2), r"np.ma.getmaskarray\(x\)"), (np.matrix([1.0]), "x @ y for its"), (np.array(["a"]), "x: dtype"),
    (scipy.sparse.csr_array(np.eye(2)), r"x: a sparse array of shape \(2, 2\) is not an argument"),
    (np.array([None]), "x: dtype object"), (np.zeros(2, [("a", "f8")]), "x: dtype"),
])
def test_refused_argument(argument: Any, message: str) -> None:
    with pytest.raises(errors.BwError, match=message):
        trace(lambda x: x, (argument,))


class Pose(np.ndarray):
    def __new__(cls, position, angle):
        return np.array([position[0], position[1], angle], dtype=float).view(cls)


def test_objects_of_classes_of_arrays() -> None:
    with pytest.raises(errors.UnsupportedError, match=r"(?s)test_errors.py.*Pose\(p\[:2\].*subclass of np.ndarray.*as an attribute"):
        bw.jit(lambda p: np.sum(Pose(p[:2], p[2])))(np.arange(3.0))
    assert bw.jit(lambda x: x * np.sum(Pose([1.0, 2.0], 3.0)))(2.0) == 12.0
