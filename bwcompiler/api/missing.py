"""Names that users of JAX look for and that do not exist: what to write instead."""

from __future__ import annotations

import difflib
import sys
from typing import NoReturn

INSTEAD = {
    "pmap": "bw.vmap; long loops run on all cores by themselves (bw.set_num_threads)",
    "device_put": "nothing: arguments and results are NumPy arrays, where they are",
    "block_until_ready": "nothing: results are ready when the call returns",
    "disable_jit": "a call of the function itself, which is NumPy code",
    "make_jaxpr": "bw.compile(fun, *args).as_text('forward'), or the `bwc dump` command",
}


def missing(name: str) -> NoReturn:
    """Raise the AttributeError of `bwcompiler.name`, with what to write instead or the names that are alike."""
    if name in INSTEAD:
        raise AttributeError(f"bw.{name} does not exist\n  hint: {INSTEAD[name]}", name=name)
    if name.startswith("__"):                      # asked for by Python itself, also while the package is being imported
        raise AttributeError(f"module 'bwcompiler' has no attribute {name!r}", name=name)
    known = [*sys.modules["bwcompiler"].__all__, *sys.modules["bwcompiler.nn"].__all__]
    alike = [one if one in sys.modules["bwcompiler"].__all__ else f"nn.{one}" for one in difflib.get_close_matches(name, known, 3, 0.7)]
    hint = f"\n  hint: there is {', '.join([f'bw.{one}' for one in alike])}" if alike else ""
    raise AttributeError(f"bw.{name} does not exist{hint}", name=name)
