"""bwcompiler: NumPy functions compiled to native forward and backward code.

    import numpy as np, bwcompiler as bw
    loss_and_grad = bw.value_and_grad(lambda w, x: np.mean(np.tanh(x @ w) ** 2))

transforms               grad, value_and_grad, vjp, jvp, linearize, jacobian (jacrev, jacfwd), hessian, hvp, vmap, jit
sparse derivatives       sparse_jacobian, sparse_hessian
loops and branches       scan, map, fori_loop, while_loop, cond, switch, associative_scan; checkpoint
custom derivatives       custom_vjp, custom_jvp, custom_root, custom_linear_solve; stop_gradient; check_grads
the backward program     compile -> Program: backward with seeds, wrt, into, scale; as_text, dump, explain
Python inside            pure_callback, primitive
namespaces               nn (PyTorch's functions), numpy (for functions without source), random (like jax.random),
                         scipy (special, stats, linalg, optimize, integrate, signal ...), tree, errors
threads, memory          set_num_threads, get_num_threads; memory_stats, release_memory

`help(bw.grad)` and so on give the details; start with docs/tour.md.
"""

from typing import TYPE_CHECKING

from bwcompiler import errors, lazy, missing, tree

if TYPE_CHECKING:
    from bwcompiler import nn, numpy, random, scipy
    from bwcompiler.api.inside.callbacks import primitive, pure_callback
    from bwcompiler.api.inside.checkpoints import checkpoint
    from bwcompiler.api.inside.loops import associative_scan, cond, fori_loop, map, scan, switch, while_loop
    from bwcompiler.api.programs.arguments.shapes import ShapeDtypeStruct, eval_shape
    from bwcompiler.api.programs.functions import jit
    from bwcompiler.api.programs.program import Program, compile
    from bwcompiler.api.sparse.derivatives import sparse_hessian, sparse_jacobian
    from bwcompiler.api.transforms.check_grads import check_grads
    from bwcompiler.api.transforms.forward import jvp
    from bwcompiler.api.transforms.implicit import custom_linear_solve, custom_root
    from bwcompiler.api.transforms.jacobians import hessian, hvp, jacfwd, jacobian, jacrev
    from bwcompiler.api.transforms.linear import linearize
    from bwcompiler.api.transforms.reverse import custom_jvp, custom_vjp, grad, stop_gradient, value_and_grad, vjp
    from bwcompiler.api.transforms.vmap import vmap
    from bwcompiler.runtime.memory import memory_stats, release_memory
    from bwcompiler.runtime.threads import get_num_threads, set_num_threads

__version__ = "0.1.0"
__all__ = [
    "Program", "ShapeDtypeStruct", "associative_scan", "check_grads", "checkpoint", "compile", "cond", "custom_jvp",
    "custom_linear_solve", "custom_root", "custom_vjp", "errors", "eval_shape", "fori_loop", "get_num_threads", "grad", "hessian", "hvp",
    "jacfwd", "jacobian", "jacrev", "jit", "jvp", "linearize", "map", "memory_stats", "nn", "numpy", "primitive",
    "pure_callback", "random", "release_memory", "scan", "scipy", "set_num_threads", "sparse_hessian", "sparse_jacobian",
    "stop_gradient", "switch", "tree", "value_and_grad", "vjp", "vmap", "while_loop",
]

lazy.set_stand_ins(numpy="bwcompiler.numpy", scipy="bwcompiler.scipy")
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy.loader(__name__, {
        "api.inside.callbacks": "primitive pure_callback",
        "api.inside.checkpoints": "checkpoint",
        "api.inside.loops": "associative_scan cond fori_loop map scan switch while_loop",
        "api.programs.functions": "jit",
        "api.programs.program": "Program compile",
        "api.programs.arguments.shapes": "ShapeDtypeStruct eval_shape",
        "api.sparse.derivatives": "sparse_hessian sparse_jacobian",
        "api.transforms.check_grads": "check_grads",
        "api.transforms.forward": "jvp",
        "api.transforms.implicit": "custom_linear_solve custom_root",
        "api.transforms.jacobians": "hessian hvp jacfwd jacobian jacrev",
        "api.transforms.linear": "linearize",
        "api.transforms.reverse": "custom_jvp custom_vjp grad stop_gradient value_and_grad vjp",
        "api.transforms.vmap": "vmap",
        "runtime.memory": "memory_stats release_memory",
        "runtime.threads": "get_num_threads set_num_threads",
    }, "nn numpy random scipy", missing.missing)
