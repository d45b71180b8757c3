"""The command line, `bwc`.  Start reading at `commands.main`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import bwcompiler
from bwcompiler.lazy import module

later = module("bwcompiler.cli.commands")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `bwc` with these words (default: those of the process); the exit status.  --version loads nothing."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words == ["--version"]:
        print(f"bwcompiler {bwcompiler.__version__}")
        return 0
    return int(later.main(words))
