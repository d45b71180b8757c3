"""Settings of the compiler that come from the environment.

    BW_VERIFY=1            verify the graph after every pass, and every kernel          (read once)
    BW_DUMP_PASSES=folder  write the graph after every pass into a folder               (read once)
    BW_DUMP=folder         write every stage of every compilation into a folder of its own
    BW_CHECK=nan           check every result of a program: a nan or an infinity is an error that names its origin
    BW_ASSUME=0            refuse functions that can only be compiled for numbers that data decide (how many elements x[mask] has)
    BW_PROGRESS=0          no line on stderr for a compilation that takes longer than a second
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from bwcompiler.passes.pass_manager import PassOptions


@cache
def pass_options() -> PassOptions:
    """The options of this process."""
    folder = os.environ.get("BW_DUMP_PASSES")
    return PassOptions(verify=os.environ.get("BW_VERIFY", "0") not in ("", "0"), dump=Path(folder) if folder else None)


def dump_folder() -> Path | None:
    """The folder for dumps of compilations (BW_DUMP); None if it is not set."""
    folder = os.environ.get("BW_DUMP")
    return Path(folder) if folder else None


def checks_finite() -> bool:
    """Whether results are checked (BW_CHECK=nan); read when a call of a new kind is compiled."""
    text = os.environ.get("BW_CHECK", "")
    if text not in ("", "0", "nan"):
        raise ValueError(f"BW_CHECK={text!r}: the only check is BW_CHECK=nan")
    return text == "nan"


def may_assume() -> bool:
    """Whether functions may be compiled for numbers that data decide, where they are refused otherwise (BW_ASSUME)."""
    return os.environ.get("BW_ASSUME", "1") not in ("", "0")


def shows_progress() -> bool:
    """Whether long compilations are announced."""
    return os.environ.get("BW_PROGRESS", "1") not in ("", "0")
