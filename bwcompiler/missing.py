"""Names that users of JAX look for and that do not exist: what to write instead."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import NoReturn

from bwcompiler.lazy import module

difflib = module("difflib")
nn = module("bwcompiler.nn")

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
    if name.startswith("__"):                      # protocols that others ask every module for
        raise AttributeError(f"module 'bwcompiler' has no attribute {name!r}", name=name)
    if find_spec(f"bwcompiler.{name}") is not None:           # what `from bwcompiler import ops` asks before it imports the module
        raise AttributeError(f"bw.{name} is a module that was not imported\n  hint: import bwcompiler.{name}", name=name)
    own = sys.modules["bwcompiler"].__all__
    alike = [one if one in own else f"nn.{one}" for one in difflib.get_close_matches(name, [*own, *nn.__all__], 3, 0.7)]
    hint = f"\n  hint: there is {', '.join([f'bw.{one}' for one in alike])}" if alike else ""
    raise AttributeError(f"bw.{name} does not exist{hint}", name=name)
