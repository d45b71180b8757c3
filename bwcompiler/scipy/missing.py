"""What modules of `bw.scipy` say of names that they do not have: what to write instead."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any

from bwcompiler import spellings

_MINIMIZE = "bw.scipy.optimize.minimize(fun, x0, method={!r}), which takes the derivatives from fun"
_GLOBAL = "scipy.optimize.{} itself, outside of compiled functions, with bw.jit(fun)"
_INSTEAD = {
    "optimize": {
        "leastsq": "bw.scipy.optimize.least_squares(fun, x0).x",
        "fminbound": "bw.scipy.optimize.minimize_scalar(fun, bounds=(a, b), method='bounded').x",
        "check_grad": "bw.check_grads(fun, (x,))",
        "approx_fprime": "bw.grad(fun)(x)",
        **{name: _MINIMIZE.format(method) for name, method in (
            ("fmin", "Nelder-Mead"), ("fmin_powell", "Powell"), ("fmin_cg", "CG"), ("fmin_bfgs", "BFGS"), ("fmin_ncg", "Newton-CG"),
            ("fmin_l_bfgs_b", "L-BFGS-B"), ("fmin_tnc", "TNC"), ("fmin_cobyla", "COBYLA"), ("fmin_slsqp", "SLSQP"))},
        **{name: _GLOBAL.format(name) for name in ("brute", "differential_evolution", "direct")},
        **{name: f"{_GLOBAL.format(name)} and minimizer_kwargs={{'jac': bw.grad(fun)}}"
           for name in ("basinhopping", "dual_annealing", "shgo")},
    },
    "integrate": {"ode": "bw.scipy.integrate.solve_ivp", "complex_ode": "bw.scipy.integrate.solve_ivp",
                  "simps": "bw.scipy.integrate.simpson", "trapz": "bw.scipy.integrate.trapezoid",
                  "cumtrapz": "bw.scipy.integrate.cumulative_trapezoid"},
}


def says_instead(space: str, names: Sequence[str]) -> Callable[[str], Any]:
    """The `__getattr__` of the module `bwcompiler.scipy.<space>` that has these names."""
    known = _INSTEAD.get(space, {})

    def absent(name: str) -> Any:
        hint = known.get(name)
        if hint is None and not difflib.get_close_matches(name, names, 1, 0.7):
            hint = f"what scipy.{space} has under that name takes numbers, outside of compiled functions; inside, bw.pure_callback calls it"
        return spellings.missing(f"bw.scipy.{space}", name, lambda: names, hint)
    return absent
