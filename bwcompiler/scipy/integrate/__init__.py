"""Functions named as in scipy.integrate that work on traced and on plain arrays.

Integrals of samples are in `samples.py`, those of functions in `quadrature.py`, differential equations behind `initial_values.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bwcompiler.scipy.integrate.initial_values import solve_ivp
from bwcompiler.scipy.integrate.ordinary_differential_equations import odeint
from bwcompiler.scipy.integrate.quadrature import dblquad, fixed_quad, quad
from bwcompiler.scipy.integrate.samples import cumulative_simpson, cumulative_trapezoid, romb, simpson, trapezoid
from bwcompiler.scipy.missing import says_instead

__all__ = [
    "cumulative_simpson", "cumulative_trapezoid", "dblquad", "fixed_quad", "odeint", "quad", "romb", "simpson", "solve_ivp",
    "trapezoid"]

if not TYPE_CHECKING:
    __getattr__ = says_instead("integrate", __all__)
