"""Names of SciPy's that `bw.scipy` has not say what to write instead."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import scipy.optimize

import bwcompiler as bw

SPACES = ["fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial", "stats"]


@pytest.mark.parametrize(("space", "name", "hint"), [
    ("optimize", "leastsq", "bw.scipy.optimize.least_squares(fun, x0).x"), ("optimize", "fmin_bfgs", "method='BFGS'"),
    ("optimize", "basinhopping", "scipy.optimize.basinhopping itself, outside of compiled functions, with bw.jit(fun) and minimizer_kwargs={'jac': bw.grad(fun)}"),
    ("optimize", "linprog", "what scipy.optimize has under that name takes numbers"), ("optimize", "curvefit", "bw.scipy.optimize.curve_fit"),
    ("integrate", "cumtrapz", "bw.scipy.integrate.cumulative_trapezoid"), ("stats", "wilcoxon", "bw.pure_callback")])
def test_hint(space: str, name: str, hint: str) -> None:
    with pytest.raises(AttributeError) as raised:
        getattr(getattr(bw.scipy, space), name)
    assert f"bw.scipy.{space}.{name} does not exist\n  hint: " in str(raised.value) and hint in str(raised.value)


@pytest.mark.parametrize("space", SPACES)
def test_every_module_says_so(space: str) -> None:
    module = importlib.import_module(f"bwcompiler.scipy.{space}")
    assert not hasattr(module, "nothing_like_this") and not hasattr(module, "__wrapped__")
    with pytest.raises(AttributeError, match=f"bw.scipy.{space}.nothing_like_this does not exist"):
        _ = module.nothing_like_this


def test_namespace() -> None:
    with pytest.raises(AttributeError, match="bw.scipy.constants does not exist"):
        _ = bw.scipy.constants
    with pytest.raises(ImportError, match=r"bw.scipy.optimize.leastsq does not exist\n  hint: bw.scipy.optimize.least_squares"):
        from bwcompiler.scipy.optimize import leastsq  # noqa: F401  (there is none: that is the test)


def test_what_is_written_instead() -> None:
    fun = bw.jit(lambda x: np.sum((x - 1.0) ** 2))
    found = scipy.optimize.basinhopping(fun, np.zeros(2), niter=1, minimizer_kwargs={"jac": bw.grad(fun)})
    np.testing.assert_allclose(found.x, 1.0, atol=1e-6)
