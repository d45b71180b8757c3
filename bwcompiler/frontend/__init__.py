"""From Python functions that use NumPy to graphs.

`tracing` has the handles (traced values) that record operations, `numpy` implements NumPy's functions for them, and `source` captures
Python's control flow from the source code of functions.  Importing this package registers NumPy's functions.
"""

from bwcompiler.frontend.numpy import dispatch
from bwcompiler.frontend.source import runtime
from bwcompiler.frontend.tracing.boundary.arguments import ArgumentType
from bwcompiler.frontend.tracing.boundary.trace_result import TraceResult
from bwcompiler.frontend.tracing.trace import trace

__all__ = ["ArgumentType", "TraceResult", "dispatch", "runtime", "trace"]
