"""Functions of scipy.special that work on traced and on plain arrays: `dir(bw.scipy.special)` lists them.

Functions without a formula in this package are computed by SciPy's inner loops, without Python and the GIL; SciPy has to be installed for
these.  Every real ufunc of scipy.special is available here under its name.
"""

from typing import Any

from bwcompiler.errors import UnsupportedError
from bwcompiler.frontend.tracing.registry import nearest
from bwcompiler.scipy.special import functions as special_functions
from bwcompiler.scipy.special.compositions import COMPOSITIONS
from bwcompiler.scipy.special.functions import BY_LOOP, function_by_loop

FUNCTIONS = {**special_functions.FUNCTIONS, **COMPOSITIONS}
__all__ = sorted(FUNCTIONS)
globals().update(FUNCTIONS)


def __getattr__(name: str) -> Any:
    try:
        found = None if name.startswith("__") else function_by_loop(name)
    except UnsupportedError as error:                          # what `hasattr` asks must be an AttributeError
        raise AttributeError(str(error), name=name) from None
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{nearest(name, [*FUNCTIONS, *BY_LOOP])}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *BY_LOOP})
