"""Objects of np.polynomial and np.poly1d with traced coefficients, and polynomial fits at traced points.

Such an object belongs to a class derived from NumPy's: its methods are NumPy's own, captured from source like the user's functions.
Traced coefficients are never taken to be 0.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.polynomial._polybase import ABCPolyBase
from numpy.polynomial.polyutils import _fit

from bwcompiler.frontend.source.concrete.makers import noted
from bwcompiler.frontend.tracing.calls import call
from bwcompiler.frontend.tracing.operands import as_tracer, is_traced, known_parts

Form = Callable[[Any], Any]
_NUMBERS = (bool, int, float, complex, np.number)
numpy_fit: Any = _fit
_SPACES = {"poly": np.polynomial.polynomial, "cheb": np.polynomial.chebyshev, "leg": np.polynomial.legendre, "herm": np.polynomial.hermite,
           "herme": np.polynomial.hermite_e, "lag": np.polynomial.laguerre}
_TIMES_X = frozenset(getattr(space, f"{name}mulx") for name, space in _SPACES.items())
_LINES = {getattr(space, f"{name}line"): name for name, space in _SPACES.items()}
KEPT = frozenset(("__class__", "__new__", "__init_subclass__", "__subclasshook__", "__setattr__", "__getattribute__", "__hash__",
                  "__repr__", "__str__"))                # methods that are not captured


def is_series(kind: Any) -> bool:
    """Whether a class is one of np.polynomial's, or np.poly1d."""
    return isinstance(kind, type) and (kind is np.poly1d or (issubclass(kind, ABCPolyBase) and kind.__module__.startswith("numpy.")))


def series_class(kind: Any, form: Form) -> Callable[..., Any]:
    """kind(coefficients, ...), of traced ones too."""
    def make(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        if not any(is_traced(one) for one in given):
            return kind(*args, **kwargs)
        made: Any = object.__new__(_class_of(kind, form))
        if kind is np.poly1d:
            _start(made, *args, **kwargs)
        else:
            form(kind.__init__)(made, *args, **kwargs)
        return made
    return make


def _start(made: Any, c_or_r: Any, r: bool = False, variable: str | None = None) -> None:
    coefficients = np.poly(c_or_r) if r else np.atleast_1d(call(as_tracer, c_or_r))
    if coefficients.ndim > 1:
        raise ValueError("Polynomial must be 1d only.")
    made.__dict__.update(coeffs=coefficients, _variable="x" if variable is None else variable)


def _class_of(kind: Any, form: Form) -> type:
    """A class whose methods are those of `kind`, captured; its objects say that they are of `kind`."""
    members: dict[str, Any] = {"__class__": property(lambda self: kind), "__array_ufunc__": None}
    for base in reversed(kind.__mro__[:-1]):
        for name, member in vars(base).items():
            if isinstance(member, types.FunctionType) and name not in KEPT and name != "__init__":
                members[name] = _of_poly1d(member, form) if kind is np.poly1d else _captured(member, form)
    for name in ("__radd__", "__rsub__", "__rmul__"):
        if name in members and kind is not np.poly1d:
            members[name] = _reflected(members[name], members[name.replace("__r", "__")], kind)
    if kind is not np.poly1d:
        members["__call__"] = _of_series(members["__call__"], kind, form)
    return type(kind.__name__, (kind,), members)


def _captured(function: types.FunctionType, form: Form) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: form(types.MethodType(function, self))(*args, **kwargs)


def _of_poly1d(function: types.FunctionType, form: Form) -> types.FunctionType:
    """A method in which `poly1d` is the maker of objects with traced coefficients."""
    names = {**function.__globals__, "poly1d": series_class(np.poly1d, form)}
    made = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _reflected(reflected: Callable[..., Any], plain: Callable[..., Any], kind: Any) -> Callable[..., Any]:
    """Where an object with known coefficients is on the left."""
    return lambda self, other: plain(other, self) if isinstance(other, kind) else reflected(self, other)


# ----- values at series: `convert` and `cast`, which ask for the value at the identity
def _of_series(plain: Callable[..., Any], kind: Any, form: Form) -> Callable[..., Any]:
    """`__call__`, also of a series: what is linear in the coefficients is a product with a matrix, which is known where the rest is."""
    def value(self: Any, arg: Any) -> Any:
        if not isinstance(arg, ABCPolyBase):
            return plain(self, arg)
        coefficients, known = self.coef, type(arg) is arg.__class__                          # ours say that they are of NumPy's class
        if known and not is_traced(self.domain) and not is_traced(self.window):
            rows = [kind.basis(k, self.domain, self.window)(arg).coef for k in range(len(coefficients))]
        else:
            coefficients = _shifted(_product(coefficients, [_powers(kind, k) for k in range(len(coefficients))]), self)
            rows, power = [np.ones(1)], arg
            for _ in coefficients[1:]:
                rows, power = [*rows, power.coef], power * arg
        return series_class(type(arg).__mro__[0 if known else 1], form)(_product(coefficients, rows), arg.domain, arg.window, arg.symbol)
    return value


def _powers(kind: Any, degree: int) -> Any:
    """The coefficients of the powers in a basis polynomial."""
    return kind.basis(degree).convert(kind=np.polynomial.Polynomial).coef


def _product(coefficients: Any, rows: list[Any]) -> Any:
    """The sum of rows of several lengths, times the coefficients."""
    return coefficients @ np.stack([np.pad(row, (0, max(map(len, rows)) - len(row))) for row in rows])


def _shifted(coefficients: Any, series: Any) -> Any:
    """The coefficients of p(off + scl v), of those of p: c'_j = scl^j Σ_k c_k binom(k, j) off^(k-j)."""
    (start, end), (low, high) = series.domain, series.window
    off, scl = (end * low - start * high) / (end - start), (high - low) / (end - start)
    count = len(coefficients)
    k, j = np.arange(count)[:, None], np.arange(count)
    binomials = np.array([[float(math.comb(row, column)) for column in range(count)] for row in range(count)])
    powers = np.stack([off ** power for power in range(count)])
    return coefficients @ (binomials * powers[np.maximum(k - j, 0)]) * scl ** j


# ----- functions that ask whether a coefficient is 0
def without_zeros(function: Any, form: Form) -> Callable[..., Any] | None:
    """What is called in the place of `polymulx`, `polyline` and their like."""
    if function in _TIMES_X:
        return lambda c: _times_x(function, form, c) if is_traced(c) else function(c)
    if function in _LINES:
        return lambda off, scl: _line(_LINES[function], off, scl) if is_traced(off) or is_traced(scl) else function(off, scl)
    return None


def _times_x(function: Any, form: Form, c: Any) -> Any:
    coefficients = np.atleast_1d(call(as_tracer, c))
    count = coefficients.shape[0]
    return form(function)(np.concatenate([coefficients, np.zeros(1, coefficients.dtype)]))[:count + 1]


def _line(name: str, off: Any, scl: Any) -> Any:
    return np.stack([call(as_tracer, one) for one in ((off + scl, -scl) if name == "lag" else (off, scl / 2 if name == "herm" else scl))])


# ----- fits
def _vandermonde(name: str, x: Any, degree: int) -> Any:
    """The values of the polynomials up to a degree, along a new last axis; name of the function of np.polynomial."""
    recurrences: dict[str, tuple[Any, Callable[[int, Any, Any], Any]]] = {
        "polyvander": (x, lambda k, one, two: x * one), "chebvander": (x, lambda k, one, two: 2 * x * one - two),
        "legvander": (x, lambda k, one, two: ((2 * k - 1) * x * one - (k - 1) * two) / k),
        "lagvander": (1 - x, lambda k, one, two: ((2 * k - 1 - x) * one - (k - 1) * two) / k),
        "hermvander": (2 * x, lambda k, one, two: 2 * (x * one - (k - 1) * two)),
        "hermevander": (x, lambda k, one, two: x * one - (k - 1) * two),
    }
    first, following = recurrences[name]
    columns = [x * 0 + 1, first]
    for k in range(2, degree + 1):
        columns.append(following(k, columns[-1], columns[-2]))
    return np.stack(columns[:degree + 1], -1)


def fit(vander_f: Any, x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None) -> Any:
    """What `polyfit`, `chebfit` ... do, of traced points and heights; a poor condition is not warned of."""
    if not any(is_traced(one) for one in (x, y, w)):
        return numpy_fit(vander_f, x, y, deg, rcond, full, w)
    points, heights = (call(as_tracer, one) + 0.0 for one in (x, y))
    degrees = np.asarray(known_parts(deg))
    if degrees.ndim > 1 or degrees.dtype.kind not in "iu" or not degrees.size:
        raise TypeError("deg must be an int or non-empty 1-D array of int")
    if degrees.min() < 0:
        raise ValueError("expected deg >= 0")
    if points.ndim != 1 or not points.size:
        raise TypeError("expected non-empty 1D vector for x")
    if heights.ndim not in (1, 2) or heights.shape[0] != points.shape[0]:
        raise TypeError("expected x and y to have same length")
    highest = int(degrees.max())
    matrix = _vandermonde(vander_f.__name__, points, highest)
    chosen = np.arange(highest + 1) if degrees.ndim == 0 else np.sort(degrees)
    matrix = matrix if degrees.ndim == 0 else matrix[:, chosen]
    if w is not None:
        weights = call(as_tracer, w) + 0.0
        if weights.shape != points.shape:
            raise TypeError("expected x and w to have same length")
        matrix, heights = matrix * weights[:, None], heights * (weights[:, None] if heights.ndim == 2 else weights)
    cutoff = points.shape[0] * float(np.finfo(points.dtype).eps) if rcond is None else rcond
    scale = np.sqrt((matrix.real ** 2 + matrix.imag ** 2 if np.iscomplexobj(matrix) else matrix ** 2).sum(0))
    scale = np.where(scale == 0, 1.0, scale)
    found, rest, rank, values = np.linalg.lstsq(matrix / scale, heights, cutoff)
    found = found / (scale[:, None] if heights.ndim == 2 else scale)
    if degrees.ndim:
        every = np.zeros_like(np.broadcast_to(found[:1], (highest + 1, *found.shape[1:])))
        every[chosen] = found
        found = every
    return (found, [rest, rank, values, cutoff]) if full else found


def at_once_of_numbers(function: Any, found: Any) -> Any:
    """found; of known numbers the function itself: nodes and weights of a quadrature (`leggauss(16)`) are nothing to record."""
    def called(*args: Any, **kwargs: Any) -> Any:
        if any(not isinstance(arg, _NUMBERS) for arg in (*args, *kwargs.values())):
            return found(*args, **kwargs)
        made = function(*args, **kwargs)
        return tuple(map(noted, made)) if isinstance(made, tuple) else noted(made)
    return called
