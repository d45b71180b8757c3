"""SciPy's solvers, with derivatives computed from the functions that they are given: see `minimize`.

Inside traced functions, programs call SciPy back, and solutions are differentiated by the implicit function theorem.  `minimizers.py` is
a good beginning; `brackets.py` has the solvers that are loops of the program itself.
"""

from typing import TYPE_CHECKING

from bwcompiler.scipy.missing import says_instead
from bwcompiler.scipy.optimize.fits import curve_fit, least_squares
from bwcompiler.scipy.optimize.minimizers import minimize, minimize_scalar
from bwcompiler.scipy.optimize.roots import bisect, brenth, brentq, fixed_point, fsolve, newton, ridder, root, root_scalar, toms748

__all__ = ["bisect", "brenth", "brentq", "curve_fit", "fixed_point", "fsolve", "least_squares", "minimize", "minimize_scalar", "newton",
           "ridder", "root", "root_scalar", "toms748"]

if not TYPE_CHECKING:
    __getattr__ = says_instead("optimize", __all__)
