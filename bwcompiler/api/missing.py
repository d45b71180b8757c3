"""Names that users of JAX look for and that do not exist yet: what to write until they do."""

from __future__ import annotations

import difflib
import sys
from typing import NoReturn

INSTEAD = {
    "checkpoint": "nothing: what is kept between forward and backward programs is chosen by the compiler",
}


def missing(name: str) -> NoReturn:
    """Raise the AttributeError of `bwcompiler.name`, with what to write instead or the names that are alike."""
    if name in INSTEAD:
        raise AttributeError(f"bw.{name} does not exist yet\n  hint: {INSTEAD[name]}", name=name)
    known = [*sys.modules["bwcompiler"].__all__, *sys.modules["bwcompiler.nn"].__all__]
    alike = [one if one in sys.modules["bwcompiler"].__all__ else f"nn.{one}" for one in difflib.get_close_matches(name, known, 3, 0.7)]
    hint = f"\n  hint: there is {', '.join([f'bw.{one}' for one in alike])}" if alike else ""
    raise AttributeError(f"bw.{name} does not exist{hint}", name=name)
