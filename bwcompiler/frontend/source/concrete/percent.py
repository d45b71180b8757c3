"""`"%.3f, step %d" % (x, k)` with traced values: what f-strings show of them, `f"{x:.3f}, step {k:d}"`."""

from __future__ import annotations

import re
from typing import Any

from bwcompiler.errors import TracerError, at
from bwcompiler.frontend.tracing.provenance.source import current_source
from bwcompiler.frontend.tracing.registry import HANDLERS
from bwcompiler.frontend.tracing.tracer import Tracer

_CONVERSION = re.compile(r"%(?:\((?P<key>[^)]*)\))?(?P<flags>[-+ #0]*)(?P<width>\*|\d*)(?:\.(?P<precision>\*|\d*))?[hlL]?"
                         r"(?P<kind>[a-zA-Z%])")
_WHOLE = {"d": "d", "i": "d", "u": "d", "x": "x", "X": "X", "o": "o"}
_REAL = frozenset("eEfFgG")


def has_traced(values: Any) -> bool:
    """Whether there is a traced value among what stands behind `%`."""
    parts = values if isinstance(values, tuple) else values.values() if isinstance(values, dict) else (values,)
    return any(isinstance(part, Tracer) for part in parts)


def formatted(text: str, values: Any) -> str:
    """text % values."""
    pending = list(values) if isinstance(values, tuple) else [values]

    def conversion(found: re.Match[str]) -> str:
        if found["kind"] == "%":
            return "%"
        if found["key"] is not None:
            given, sizes, value = values, [], values[found["key"]]
        else:
            count = 1 + [found["width"], found["precision"]].count("*")
            if len(pending) < count:
                raise TypeError("not enough arguments for format string")
            given = tuple(pending[:count])
            *sizes, value = given
            del pending[:count]
        if not _is_shown(value, found["kind"]):
            return str(found[0] % given)
        return _shown(value, found, *[sizes.pop(0) if found[size] == "*" else found[size] for size in ("width", "precision")])
    made = _CONVERSION.sub(conversion, text)
    if pending and not isinstance(values, dict):
        raise TypeError("not all arguments converted during string formatting")
    return made


def _is_shown(value: Any, kind: str) -> bool:
    """Whether a conversion is of a traced value, and one that Python has for it; all else is left to Python."""
    return isinstance(value, Tracer) and (kind == "s" or (not value.shape and (kind in _WHOLE or kind in _REAL)))


def _shown(value: Any, found: re.Match[str], width: Any, precision: Any) -> str:
    """What `format` gives for a conversion."""
    kind, flags = found["kind"], found["flags"]
    if precision is not None and kind not in _REAL:
        raise TracerError(at(current_source(), f"{found[0]} of a traced value, whose text is not known while tracing\n"
                             "  hint: a number behind the point goes with e, f and g: %.3f"))
    align = "<" if "-" in flags else ">"
    if kind == "s":                                # an array takes no width
        return format(value, f"{align}{width}" if width and not value.shape else "")
    if kind in _WHOLE and value.dtype.kind == "f":
        value = HANDLERS["call_of"](int)(value)
    sign = next((one for one in "+ " if one in flags), "")
    fill = "0" if "0" in flags and align == ">" else ""
    digits = f".{precision or 0}" if precision is not None else ""
    return format(value, f"{'' if fill else align}{sign}{'#' if '#' in flags else ''}{fill}{width}{digits}{_WHOLE.get(kind, kind)}")
