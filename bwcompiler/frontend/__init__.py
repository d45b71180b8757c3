"""From Python functions over NumPy to graphs: handles, NumPy's protocols, tracing.  Importing it registers all families."""

from bwcompiler.frontend import numpy_dispatch, special_functions
from bwcompiler.frontend.trace import ArgumentType, TraceResult, inline, trace

__all__ = ["ArgumentType", "TraceResult", "inline", "numpy_dispatch", "special_functions", "trace"]
