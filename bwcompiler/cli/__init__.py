"""The command line, `bwc`.  Start reading at `commands.main`."""

from bwcompiler.cli.commands import main

__all__ = ["main"]
