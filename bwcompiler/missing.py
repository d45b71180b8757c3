"""Names that users of JAX, autograd, PyTorch and Numba look for and that do not exist: what to write instead."""

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
    "lax": "bw.scan, bw.cond, bw.while_loop, bw.fori_loop, bw.stop_gradient ...; Python's own loops and branches are compiled too",
    "tree_map": "bw.tree.map",
    "tree_util": "bw.tree",
    "remat": "bw.checkpoint",
    "config": "nothing for float64: results have NumPy's dtypes; settings are environment variables (docs/tour.md)",
    "debug_nans": "BW_CHECK=nan in the environment",
    "debug": "print(x.shape) while tracing; bw.pure_callback, whose result is used, when the program runs",
    "devices": "nothing: programs run on the CPU",
    "clear_caches": "fun.clear_cache() of one compiled function; `bwc cache clear` for the files of all",
    "flatten_util": "np.concatenate([np.ravel(leaf) for leaf in bw.tree.leaves(tree)])",
    "closure_convert": "nothing: arrays that a function captures are read at every call",
    "linear_transpose": "bw.vjp(fun, x)[1]: the pullback of a linear function is its transpose",
    "elementwise_grad": "bw.grad(lambda x: np.sum(fun(x))), or bw.vmap(bw.grad(fun))",
    "make_vjp": "bw.vjp(fun, *args) -> (out, pullback)",
    "make_jvp": "bw.jvp(fun, args, tangents)",
    "njit": "bw.jit",
    "prange": "range; operations on large arrays, and what bw.vmap makes of a function, run on all cores by themselves",
    "tensor": "nothing: arrays are NumPy's; bw.grad(fun, argnums=...) says what is differentiated",
    "no_grad": "nothing: nothing is recorded unless a derivative is asked for; bw.stop_gradient(x) is a constant",
    "autograd": "bw.grad, bw.vjp, bw.jvp; bw.custom_vjp for a backward of one's own",
    "func": "bw.grad, bw.vmap, bw.jacobian, bw.hessian ... of this package take functions as torch.func does",
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
