"""Calls with a number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import bwcompiler as bw


def with_threads(count: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """function(*arguments), while programs may use so many threads."""
    before = bw.get_num_threads()
    bw.set_num_threads(count)
    try:
        return function(*arguments)
    finally:
        bw.set_num_threads(before)
