"""Settings of the compiler that come from the environment, read once.

    BW_VERIFY=1            verify the graph after every pass, and every kernel
    BW_DUMP_PASSES=folder  write the graph after every pass into a folder
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
