"""What `bwcompiler.name` gives for a name that does not exist."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

from bwcompiler.lazy import module

nn = module("bwcompiler.nn")
spellings = module("bwcompiler.spellings")
tree = module("bwcompiler.tree")


def missing(name: str) -> Any:
    """Raise the AttributeError of `bwcompiler.name`, with what to write instead or the names that are alike (`spellings.missing`)."""
    if not name.startswith("__") and find_spec(f"bwcompiler.{name}") is not None:
        # what `from bwcompiler import ops` asks before it imports the module
        raise AttributeError(f"bw.{name} is a module that was not imported\n  hint: import bwcompiler.{name}", name=name)
    return spellings.missing("bw", name, _known)


def _known() -> list[str]:
    below = {"nn": nn, "tree": tree}
    return [*sys.modules["bwcompiler"].__all__, *[f"{space}.{one}" for space, module in below.items() for one in module.__all__]]
