"""What cannot be traced: every row of the table of hints, escaped tracers, unsupported functions and keywords.

The first line of a message is the user's own line (this file's), and the message says what to write instead.
"""

from __future__ import annotations

import math
import threading
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special

from bwcompiler import errors
from bwcompiler.frontend import trace

A = np.ones(3)
Row = tuple[Callable[[Any], Any], type[Exception], str]

HINTS: dict[str, Row] = {
    "if": (lambda x: 1 if x[0] > 0 else 2, errors.TracerBoolError, "np.where"),
    "while": (lambda x: _while(x), errors.TracerBoolError, "bw.while_loop"),
    "and": (lambda x: x[0] > 0 and x[1] > 0, errors.TracerBoolError, "for and/or/not: & | ~"),
    "max": (lambda x: max(x[0], x[1]), errors.TracerBoolError, "np.maximum"),
    "if array": (lambda x: 1 if x.any() else 2, errors.TracerBoolError, "bw.cond"),
    "in": (lambda x: 1.0 in x, errors.TracerBoolError, "np.any"),
    "float": (lambda x: float(x[0]), errors.TracerError, "leave the float"),
    "math.sin": (lambda x: math.sin(x[0]), errors.TracerError, "np.sin instead of math.sin"),
    "np.float64": (lambda x: np.float64(x[0]), errors.TracerError, "np.sin"),
    "complex": (lambda x: complex(x[0]), errors.TracerError, "leave the complex"),
    "int": (lambda x: int(x[0]), errors.TracerIndexError, "x.astype(int)"),
    "range": (lambda x: range(x.argmax()), errors.TracerIndexError, "bw.fori_loop"),
    "list index": (lambda x: [1, 2, 3][x.argmax()], errors.TracerIndexError, "index an array instead of a list"),
    "shape": (lambda x: np.zeros(x.argmax()), errors.TracerIndexError, "pass the number as a Python int"),
    "reshape": (lambda x: x.reshape(x.argmax(), -1), errors.TracerIndexError, "static_argnums"),
    "np.asarray": (lambda x: np.asarray(x), errors.TracerArrayError, "np.stack"),
    "np.array of arrays": (lambda x: np.array([x, x]), errors.TracerArrayError, "np.stack([x, y]) instead of np.array([x, y])"),
    "A[...] = x": (lambda x: A.__setitem__(slice(None), x), errors.TracerArrayError, "np.zeros_like(x)"),
    "A[0] = x": (lambda x: A.__setitem__(0, x[0]), errors.TracerError, "A = np.zeros_like(x)"),
    "A.dot": (lambda x: A.dot(x), errors.TracerArrayError, "A @ x"),
    "np.vectorize": (lambda x: np.vectorize(lambda t: t + 1)(x), errors.TracerArrayError, "hint"),
    "np.piecewise": (lambda x: np.piecewise(A, [A > 0], [x]), errors.TracerArrayError, "hint"),
    "np.full": (lambda x: np.full(3, x), errors.TracerArrayError, "np.full_like(x"),
    "np.arange": (lambda x: np.arange(x[0]), errors.TracerError, "hint"),
    "np.full_like(A, x)": (lambda x: np.full_like(A, x), errors.TracerArrayError, "copied into a concrete array"),
    "np.copyto(A, x)": (lambda x: np.copyto(A, x), errors.TracerArrayError, "np.zeros_like(x)"),
    "out=A": (lambda x: np.sin(x, out=np.empty(3)), errors.TracerArrayError, "out= is a concrete array"),
    "A += x": (lambda x: _augmented(x), errors.TracerArrayError, "out= is a concrete array"),
    "np.add.at(A)": (lambda x: np.add.at(A, [0], x[:1]), errors.TracerArrayError, "np.zeros_like"),
    "scipy.linalg": (lambda x: scipy.linalg.norm(x), errors.TracerArrayError, "bwcompiler.scipy"),
    "scipy.special.logsumexp": (lambda x: scipy.special.logsumexp(x), errors.TracerArrayError, "bwcompiler.scipy"),
    "hash": (lambda x: {x: 1}, errors.TracerError, "static_argnums"),
    "item": (lambda x: x[0].item(), errors.TracerArrayError, "as it is"),
    "tolist": (lambda x: x.tolist(), errors.TracerArrayError, "iterate"),
    "method": (lambda x: x.tobytes(), errors.UnsupportedError, "ndarray.tobytes"),
    "np.where(mask)": (lambda x: np.where(x > 0), errors.UnsupportedError, "np.where(condition, a, b)"),
    "unsupported": (lambda x: np.packbits(x > 0), errors.UnsupportedError, "np.packbits is not supported"),
    "nearest": (lambda x: np.histogram2d(x, x), errors.UnsupportedError, "nearest supported: histogram"),
    "unsupported ufunc": (lambda x: np.isnat(x), errors.UnsupportedError, "np.isnat"),
    "ufunc method": (lambda x: np.add.reduceat(x, x.astype(int)), errors.UnsupportedError, "np.add.reduceat"),
    "keyword": (lambda x: np.linalg.svd(np.outer(x, x), hermitian=True), errors.UnsupportedError, "hermitian=True"),
    "keyword value": (lambda x: np.cov(x, fweights=[1, 2, 1]), errors.UnsupportedError, "fweights"),
    "ufunc keyword": (lambda x: np.add(x, x, signature="dd->d"), errors.UnsupportedError, "signature="),
    "where without out": (lambda x: np.add(x, x, where=x > 0), errors.UnsupportedError, "np.where"),
    "shapes": (lambda x: x + np.ones(4), errors.ShapeError, "could not be broadcast together with shapes (3,) (4,)"),
    "matmul shapes": (lambda x: x @ np.ones((4, 2)), errors.ShapeError, "inner extents 3 and 4 differ"),
    "reshape size": (lambda x: x.reshape(2, 2), errors.ShapeError, "cannot reshape array of shape (3,) into shape (2, 2)"),
    "dtype": (lambda x: x & 1, errors.DTypeError, "bitwise_and"),
    "boolean subtract": (lambda x: (x > 0) - (x > 1), errors.DTypeError, "boolean subtract"),
    "float16": (lambda x: np.sin(x > 0), errors.DTypeError, "float16"),
    "in place cast": (lambda x: _narrow(x), errors.DTypeError, "same_kind"),
    "object": (lambda x: x + np.array(["a", "b", "c"]), errors.DTypeError, "dtype <U1"),
    "output": (lambda x: {"a": "text"}, errors.TracerError, "result['a'] is of type str"),
    "pickle": (lambda x: __import__("pickle").dumps(x), errors.TracerError, "pickled"),
}


def _while(x: Any) -> Any:
    while x[0] > 0:
        x = x - 1
    return x


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
        trace(fun, (np.ones(3),))
    message = str(caught.value)
    assert hint in message.partition("\n")[2], message
    if name != "output":
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert not any("/bwcompiler/frontend/" in frame.filename for frame in frames[3:]), frames
        assert message.startswith(f"{__file__}:"), message
        first = message.splitlines()[0]
        assert "lambda" in first or any(text in first for text in ("while x", "local += x", "n += x")), message


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


KEPT: list[Any] = []


def test_escaped_tracer() -> None:
    def leak(x: Any) -> Any:
        KEPT.append(x * 2)
        KEPT.append(x)
        return x

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
    ("text", "result is of type str"), ({"w": object()}, r"result\['w'\] is of type object"), (iter([1.0]), "an iterator is used up"), (1j, "complex arguments"),
    (np.ones(2, np.float16), "x: dtype float16"), (np.ma.ones(2), "MaskedArray"), (np.array(["a"]), "x: dtype"),
    (np.array([None]), "x: dtype object"), (np.zeros(2, [("a", "f8")]), "x: dtype"),
])
def test_refused_argument(argument: Any, message: str) -> None:
    with pytest.raises(errors.BwError, match=message):
        trace(lambda x: x, (argument,))
