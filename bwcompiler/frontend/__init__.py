"""From Python functions over NumPy to graphs: `tracing` has the handles that record, `numpy` what NumPy's functions do on them.

`source` captures Python's control flow from the text of functions.  Importing it registers NumPy's functions.
"""

from bwcompiler.frontend.numpy import dispatch
from bwcompiler.frontend.source import runtime
from bwcompiler.frontend.tracing.arguments import ArgumentType
from bwcompiler.frontend.tracing.trace import TraceResult, trace

__all__ = ["ArgumentType", "TraceResult", "dispatch", "runtime", "trace"]
