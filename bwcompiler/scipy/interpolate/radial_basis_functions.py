"""`bw.scipy.interpolate.RBFInterpolator`: scattered data, by radial basis functions and polynomials."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from bwcompiler.api.inside.eager import graph_function
from bwcompiler.api.transforms.reverse import stop_gradient
from bwcompiler.errors import ShapeError, UnsupportedError
from bwcompiler.frontend.tracing.operands import number_value, real_value
from bwcompiler.frontend.tracing.stand_ins import StandIn
from bwcompiler.frontend.tracing.tracer import fresh


def _away(squares: Any, formula: Callable[[Any], Any]) -> Any:
    """The formula of squared distances, 0 if these are: there its derivatives vanish, or there is a cusp."""
    zero = squares == 0
    return np.where(zero, 0.0, formula(np.where(zero, 1.0, squares)))


KERNELS: dict[str, Callable[[Any], Any]] = {                    # of squared distances
    "linear": lambda s: -_away(s, np.sqrt), "thin_plate_spline": lambda s: _away(s, lambda s: 0.5 * s * np.log(s)),
    "cubic": lambda s: _away(s, lambda s: s * np.sqrt(s)), "quintic": lambda s: -_away(s, lambda s: s * s * np.sqrt(s)),
    "multiquadric": lambda s: -np.sqrt(s + 1.0), "inverse_multiquadric": lambda s: 1.0 / np.sqrt(s + 1.0),
    "inverse_quadratic": lambda s: 1.0 / (s + 1.0), "gaussian": lambda s: np.exp(-s),
}
LEAST_DEGREES = {"multiquadric": 0, "linear": 0, "thin_plate_spline": 1, "cubic": 1, "quintic": 2}
SCALE_INVARIANT = ("linear", "thin_plate_spline", "cubic", "quintic")


def _powers(dimensions: int, degree: int) -> Any:
    found = [[chosen.count(k) for k in range(dimensions)] for total in range(degree + 1)
             for chosen in itertools.combinations_with_replacement(range(dimensions), total)]
    return np.array(found, np.int64).reshape(-1, dimensions)


def _monomials(x: Any, powers: Any) -> Any:
    """One column for each row of powers."""
    columns = []
    for row in powers:
        column = np.ones(x.shape[0]) + 0.0 * x[:, 0]
        for k, power in enumerate(row):
            for _ in range(power):
                column = column * x[:, k]
        columns.append(column)
    return np.stack(columns, 1) if columns else np.zeros((x.shape[0], 0))


def _basis(x: Any, y: Any, kernel: str, epsilon: Any, powers: Any) -> tuple[Any, Any]:
    distances = (((x[:, None, :] - y[None, :, :]) * epsilon) ** 2).sum(-1)
    low, high = stop_gradient(y.min(0)), stop_gradient(y.max(0))
    scale = (high - low) / 2.0
    scaled = (x - (low + high) / 2.0) / np.where(scale == 0, 1.0, scale)
    return KERNELS[kernel](distances), _monomials(scaled, powers)


@graph_function
def _coefficients(y: Any, d: Any, smoothing: Any, epsilon: Any, kernel: str, degree: int) -> Any:
    places: Any = fresh(real_value(y))
    powers = _powers(places.shape[1], degree)
    radial, polynomial = _basis(places, places, kernel, epsilon, powers)
    radial = radial + np.diag(np.broadcast_to(smoothing, (places.shape[0],)) + 0.0)
    below = np.concatenate([polynomial.T, np.zeros((powers.shape[0], powers.shape[0]))], 1)
    matrix = np.concatenate([np.concatenate([radial, polynomial], 1), below])
    right: Any = fresh(number_value(d)).reshape(places.shape[0], -1)
    return np.linalg.solve(matrix, np.concatenate([right, np.zeros((powers.shape[0], right.shape[1]), right.dtype)]))


@graph_function
def _values(x: Any, y: Any, coefficients: Any, epsilon: Any, kernel: str, degree: int) -> Any:
    points, places = fresh(real_value(x)), fresh(real_value(y))
    return np.concatenate(_basis(points, places, kernel, epsilon, _powers(places.shape[1], degree)), 1) @ coefficients


class RBFInterpolator(StandIn):
    """An interpolant of values d at the points y, of shape (n, dimensions), as scipy.interpolate.RBFInterpolator, with its keywords.

    y, d, smoothing, epsilon and the points of a call may be traced.  Raises UnsupportedError with neighbors, as they depend on data;
    ShapeError and ValueError for what does not fit.

    >>> import numpy as np, bwcompiler as bw
    >>> y = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> f = bw.scipy.interpolate.RBFInterpolator(y, np.array([0.0, 1.0, 1.0, 2.0]))
    >>> f(np.array([[0.5, 0.25]])).round(6).tolist(), bw.jacobian(f)(np.array([[0.5, 0.25]])).round(6).ravel().tolist()
    ([0.75], [1.0, 1.0])
    """

    def __init__(self, y: Any, d: Any, neighbors: int | None = None, smoothing: Any = 0.0, kernel: str = "thin_plate_spline",
                 epsilon: Any = None, degree: int | None = None) -> None:
        super().__init__()
        if neighbors is not None:
            raise UnsupportedError("RBFInterpolator of traced values: which neighbors are near depends on data\n  hint: neighbors=None")
        if np.ndim(y) != 2:
            raise ValueError("`y` must be a 2-dimensional array.")
        if np.shape(d)[:1] != np.shape(y)[:1]:
            raise ValueError(f"Expected the first axis of `d` to have length {np.shape(y)[0]}.")
        kernel = kernel.lower()
        if kernel not in KERNELS:
            raise ValueError(f"`kernel` must be one of {set(KERNELS)}.")
        if epsilon is None and kernel not in SCALE_INVARIANT:
            raise ValueError(f"`epsilon` must be specified if `kernel` is not one of {set(SCALE_INVARIANT)}.")
        self.y, self.d, self.smoothing, self.kernel = y, d, smoothing, kernel
        self.epsilon = 1.0 if epsilon is None else epsilon
        self.degree = max(LEAST_DEGREES.get(kernel, -1), 0) if degree is None else int(degree)
        count = _powers(np.shape(y)[1], self.degree).shape[0]
        if count > np.shape(y)[0]:
            raise ValueError(f"At least {count} data points are required when `degree` is {self.degree} and the number of dimensions is "
                             f"{np.shape(y)[1]}.")
        self.coefficients = _coefficients(y, d, smoothing, self.epsilon, kernel=kernel, degree=self.degree)

    def __call__(self, x: Any) -> Any:
        if np.ndim(x) != 2 or np.shape(x)[1] != np.shape(self.y)[1]:
            raise ShapeError(f"x must have shape (points, {np.shape(self.y)[1]}), got {np.shape(x)}")
        found = _values(x, self.y, self.coefficients, self.epsilon, kernel=self.kernel, degree=self.degree)
        return found.reshape(np.shape(x)[0], *np.shape(self.d)[1:])
