"""Lists that hold traced numbers or arrays, in the places of arrays: as SciPy takes them."""

from typing import Any

import numpy as np
import pytest
from scipy import integrate, interpolate, ndimage

import bwcompiler as bw

X = np.array([0.3, 1.2, 2.1])
IMAGE = np.sin(np.arange(30.0)).reshape(5, 6)


def warped(x: Any) -> Any:
    rows, columns = np.meshgrid(np.arange(5), np.arange(6), indexing="ij")
    return np.sum(ndimage.map_coordinates(x[1] * IMAGE, [rows + x[0] * IMAGE, columns + 0.1 * x[2]], order=1, mode="nearest") ** 2)


def oscillator(y: Any, t: Any, rate: Any) -> Any:
    place, speed = y
    return [speed, -rate * place]


def time_first(t: Any, y: Any, rate: Any) -> Any:
    return y[1], -rate * y[0]


@pytest.mark.parametrize("program", [
    warped,
    lambda x: ndimage.map_coordinates([[x[0], 1.0], [x[1], 2.0]], [[x[0]], [0.5]], order=1)[0],
    lambda x: ndimage.convolve1d([x[0], x[1], x[2]], [1.0, 2.0])[0],
    lambda x: ndimage.gaussian_filter([[x[0], x[1], x[2]]], 1.0)[0, 1],
    lambda x: ndimage.uniform_filter([x[0], x[1], x[2]], 2)[1],
    lambda x: ndimage.maximum_filter([x[0], x[1], x[2]], 2)[1],
    lambda x: ndimage.shift([x[0], x[1], x[2]], [x[0]], order=1)[1],
    lambda x: interpolate.interpn(([0.0, 1.0], [0.0, 1.0]), [[x[0], x[1]], [x[2], 1.0]], [[0.3, x[0]]])[0],
    lambda x: integrate.odeint(oscillator, [x[1], 0.0], [0.0, 0.5, 1.0], args=(x[0],))[2, 0],
    lambda x: integrate.odeint(oscillator, (x[1], x[2]), [0.0, x[0]], args=(2.0,))[1, 1],
    lambda x: integrate.odeint(time_first, [x[1], 0.0], np.linspace(0.0, 1.0, 4), (x[0],), tfirst=True)[2, 0],
    lambda x: integrate.odeint(lambda p, t: x[0] * p * (1 - p), 0.1, [0.0, 0.4])[1, 0]])
def test_as_scipy(program: Any) -> None:
    value, gradient = bw.value_and_grad(program)(X)
    direction = np.array([0.3, -0.2, 0.5])
    near = float(program(X + 1e-5 * direction)) - float(program(X - 1e-5 * direction))
    assert value == pytest.approx(float(program(X)), rel=1e-6)
    assert gradient @ direction == pytest.approx(near / 2e-5, rel=1e-4, abs=1e-6)
