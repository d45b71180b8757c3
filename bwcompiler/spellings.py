"""What other libraries call things that are called otherwise here, or are not needed: names, keywords, and what to write instead.

Start reading at `missing`, which module `__getattr__`s end in, and `says_instead`, which functions with keywords are decorated by.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeVar

import numpy as np

from bwcompiler.lazy import module

difflib = module("difflib")

Fun = TypeVar("Fun", bound=Callable[..., Any])

_NOTHING = "leave it out"
_ONE_DEVICE = f"{_NOTHING}: programs run on the CPU, long loops on all cores (bw.set_num_threads)"
_FLAT = "np.concatenate([np.ravel(leaf) for leaf in bw.tree.leaves(tree)])"
_ADD_AT = "y = x.copy(); np.add.at(y, index, values), where indices may be repeated"
_NO_AXIS_NAMES = "axes of bw.vmap have no names: reduce the result of the map along its axis, bw.vmap(f)(xs).mean(0)"
_SEED = "bw.vjp(fun, *args) -> (out, pullback); pullback(seed) -> one cotangent per argument"

# Names by where they are looked for: in bwcompiler itself, and in its modules.
NAMES: Mapping[str, Mapping[str, str]] = {
    "bw": {
        # JAX
        "pmap": "bw.vmap; long loops run on all cores by themselves (bw.set_num_threads)",
        "device_put": "nothing: arguments and results are NumPy arrays, where they are",
        "device_get": "nothing: results are NumPy arrays",
        "block_until_ready": "nothing: results are ready when the call returns",
        "disable_jit": "a call of the function itself, which is NumPy code",
        "make_jaxpr": "bw.compile(fun, *args).as_text('forward'), or the `bwc dump` command",
        "remat": "bw.checkpoint",
        "named_scope": "nothing: values have the names of your variables, in every dump",
        "named_call": "nothing: values have the names of your variables, in every dump",
        "ensure_compile_time_eval": "nothing: what does not depend on an argument is computed by NumPy while tracing",
        "float0": "None, which is the cotangent of an integer argument",
        "Array": "np.ndarray",
        "typeof": "x.shape and x.dtype, which are known while tracing",
        "devices": "nothing: programs run on the CPU",
        "device_count": "bw.get_num_threads()",
        "local_device_count": "bw.get_num_threads()",
        "default_backend": "nothing: programs run on the CPU",
        "sharding": "nothing: programs run on the CPU, long loops on all cores",
        "enable_x64": "nothing: results have NumPy's dtypes",
        "debug_nans": "BW_CHECK=nan in the environment",
        "clear_caches": "fun.clear_cache() of one compiled function; `bwc cache clear` for the files of all",
        "closure_convert": "nothing: arrays that a function captures are read at every call",
        "linear_transpose": "bw.vjp(fun, x)[1]: the pullback of a linear function is its transpose",
        "custom_gradient": "bw.custom_vjp",
        "gradient": "bw.grad",
        "custom_batching": "nothing: rules of bw.custom_vjp are mapped; for Python functions, bw.primitive(fun, vectorized=True)",
        "checkpoint_name": "nothing: bw.checkpoint(fun, policy=lambda op: op == 'matmul') chooses by the ops' names",
        "io_callback": "bw.pure_callback, whose result is used; what has effects is for outside of the function",
        "ravel_pytree": _FLAT,
        "profiler": "Program.explain() and cost_analysis(); `bwc passes FUNCTION` for the time of compiling",
        "image": "bw.nn.interpolate",
        # autograd
        "elementwise_grad": "bw.grad(lambda x: np.sum(fun(x))), or bw.vmap(bw.grad(fun))",
        "deriv": "bw.grad(lambda x: np.sum(fun(x))), or bw.vmap(bw.grad(fun))",
        "make_vjp": _SEED,
        "make_jvp": "bw.jvp(fun, args, tangents) -> (out, tangent)",
        "make_hvp": "bw.hvp(fun)(x, v)",
        "make_ggnvp": "bw.vjp(f, x)[1](bw.hvp(g)(f(x), bw.jvp(f, (x,), (v,))[1]))",
        "hessian_vector_product": "bw.hvp(fun)(x, v)",
        "hessian_tensor_product": "bw.hvp(fun)(x, v)",
        "tensor_jacobian_product": _SEED,
        "vector_jacobian_product": _SEED,
        "jacobian_vector_product": "bw.jvp(fun, args, tangents) -> (out, tangent)",
        "grad_and_aux": "bw.grad(fun, has_aux=True)",
        "grad_named": "bw.grad(fun, argnums=position)",
        "multigrad_dict": "bw.grad(lambda params: fun(**params))(params), with the arguments in a dict",
        "holomorphic_grad": "bw.grad(fun, holomorphic=True)",
        "defvjp": "bw.custom_vjp(fun).defvjp(fwd, bwd); bw.primitive(fun).defvjp(fwd, bwd) for what cannot be traced",
        "defjvp": "bw.custom_jvp(fun).defjvp(rule)",
        **dict.fromkeys(("isinstance", "dict", "list", "tuple"), "Python's own"),
        # PyTorch, Numba
        "njit": "bw.jit",
        "np": "import numpy as np, as always; bw.numpy makes arrays that take traced values where a function's source is not at hand",
        "Function": "a Python function of arrays; bw.custom_vjp, where it has a derivative of its own",
        **dict.fromkeys(("MX", "SX", "DM"), "arguments of a Python function, which are NumPy's arrays: bw.jit(lambda x: ...)"),
        "prange": "range; operations on large arrays, and what bw.vmap makes of a function, run on all cores by themselves",
        "vectorize": "bw.vmap(fun), or NumPy's operations on arrays",
        "guvectorize": "bw.vmap(fun)",
        "jitclass": "a dataclass of arrays, as an argument",
        "objmode": "bw.pure_callback(fun, result_spec, *args)",
        "tensor": "nothing: arrays are NumPy's; bw.grad(fun, argnums=...) says what is differentiated",
        "no_grad": "nothing: nothing is recorded unless a derivative is asked for; bw.stop_gradient(x) is a constant",
        "autograd": "bw.grad, bw.vjp, bw.jvp; bw.custom_vjp for a backward of one's own",
        "func": "bw.grad, bw.vmap, bw.jacobian, bw.hessian ... of this package take functions as torch.func does",
        "optim": "bw.tree.map(lambda p, d: p - rate * d, params, gradients)",
        # how programs are seen and kept
        "explain": "bw.jit(fun).explain(*args)",
        "as_text": "bw.jit(fun).as_text('adjoint', *args)",
        "dump": "bw.jit(fun).dump('page.html', *args)",
        "save": "pickle.dumps(bw.compile(fun, *args)); as NumPy source, .dump('gradient.py')",
        "load": "pickle.loads",
    },
    "bw.tree": {
        "transpose": "nested calls of bw.tree.map",
        "broadcast": "bw.tree.map(lambda part: bw.tree.map(lambda _: part, ...), prefix), or bw.tree.match_prefix",
        "register_pytree_with_keys": "bw.tree.register_pytree_node(cls, flatten, unflatten)",
        "register_pytree_with_keys_class": "bw.tree.register_pytree_node_class",
        "register_static": "nothing: objects that are no containers are compile-time values",
        "Partial": "functools.partial; arrays that a function captures are read at every call",
        "is_leaf": "bw.tree.leaves(x) == [x]",
    },
    "bw.random": {
        "key_data": "the key itself: an array of two uint32 numbers",
        "wrap_key_data": "the array itself: an array of two uint32 numbers is a key",
        "shuffle": "bw.random.permutation",
        "randn": "bw.random.normal(key, shape)",
        "rand": "bw.random.uniform(key, shape)",
        "seed": "key = bw.random.key(seed), and the key as an argument",
        "default_rng": "key = bw.random.key(seed), and the key as an argument",
        "standard_normal": "bw.random.normal(key, shape)",
        "binomial": "np.sum(bw.random.bernoulli(key, p, (n, *shape)), 0)",
    },
    "bw.nn": {
        "functional": "the functions of torch.nn.functional are those of bw.nn itself",
        "swish": "bw.nn.silu",
        "hard_swish": "bw.nn.hardswish",
        "hard_silu": "bw.nn.hardswish",
        "hard_tanh": "bw.nn.hardtanh",
        "hard_sigmoid": "bw.nn.hardsigmoid",
        "soft_sign": "bw.nn.softsign",
        "log_sigmoid": "bw.nn.logsigmoid",
        "dot_product_attention": "bw.nn.scaled_dot_product_attention, whose axes are (batch, heads, length, features)",
        "standardize": "bw.nn.layer_norm(x, x.shape[-1:])",
        "identity": "lambda x: x",
        "squareplus": "(x + np.sqrt(x * x + 4)) / 2",
        "initializers": "bw.random.normal(key, shape) * scale",
    },
}

# Namespaces that do not exist.  Their names are looked up here, then in bwcompiler itself and in NumPy; "" is about all others.
NAMESPACES: Mapping[str, Mapping[str, str]] = {
    "lax": {
        "": "NumPy's functions, and bw.scan, bw.cond, bw.while_loop, bw.fori_loop ...; Python's own loops and branches are compiled too",
        "select": "np.where(pred, on_true, on_false)",
        "select_n": "np.where(which, case1, case0); np.choose(which, cases) for more than two",
        "dynamic_slice": "x[i:i + n]",
        "dynamic_slice_in_dim": "np.take(x, start + np.arange(size), axis)",
        "dynamic_index_in_dim": "np.take(x, i, axis)",
        "dynamic_update_slice": "y = x.copy(); y[i:i + len(update)] = update",
        "dynamic_update_slice_in_dim": "y = x.copy(); y[i:i + len(update)] = update",
        "dynamic_update_index_in_dim": "y = x.copy(); y[i] = update",
        "slice": "x[start:stop:step]",
        "slice_in_dim": "x[start:stop:step]",
        "index_in_dim": "np.take(x, i, axis)",
        "top_k": "np.sort(x)[..., ::-1][..., :k], and np.argsort(-x)[..., :k] for the places",
        "reduce_window": "np.lib.stride_tricks.sliding_window_view(x, n).max(-1); bw.nn.max_pool2d, avg_pool2d ...",
        "conv": "bw.nn.conv1d, conv2d, conv3d, with PyTorch's layouts",
        "conv_general_dilated": "bw.nn.conv1d, conv2d, conv3d(x, w, b, stride, padding, dilation, groups), with PyTorch's layouts",
        "conv_transpose": "bw.nn.conv_transpose1d, conv_transpose2d, conv_transpose3d, with PyTorch's layouts",
        "dot_general": "np.einsum, np.tensordot or np.matmul",
        "batch_matmul": "np.matmul(x, y)",
        "dot": "x @ y",
        "iota": "np.arange(n, dtype=dtype)",
        "broadcasted_iota": "np.indices(shape)[axis]",
        "broadcast": "np.broadcast_to(x, (*sizes, *x.shape))",
        "broadcast_in_dim": "np.broadcast_to(x[:, None], shape)",
        "collapse": "x.reshape(shape)",
        "rev": "np.flip(x, axes)",
        "clamp": "np.clip(x, low, high), whose arguments have another order",
        "convert_element_type": "x.astype(dtype)",
        "bitcast_convert_type": "np.frexp, np.signbit; other readings of the bits are for outside of the function",
        "sort_key_val": "order = np.argsort(keys, kind='stable'); keys[order], values[order]",
        "approx_max_k": "np.sort(x)[..., ::-1][..., :k], and np.argsort(-x)[..., :k] for the places",
        "approx_min_k": "np.sort(x)[..., :k], and np.argsort(x)[..., :k] for the places",
        "gather": "x[index]",
        "scatter": "y = x.copy(); y[index] = values",
        "scatter_add": _ADD_AT,
        "scatter_mul": "y = x.copy(); np.multiply.at(y, index, values)",
        "scatter_max": "y = x.copy(); np.maximum.at(y, index, values)",
        "scatter_min": "y = x.copy(); np.minimum.at(y, index, values)",
        "reduce": "np.sum, np.prod, np.max, np.min, np.all or np.any(x, axis)",
        "cummax": "np.maximum.accumulate(x, axis)",
        "cummin": "np.minimum.accumulate(x, axis)",
        "cumlogsumexp": "np.logaddexp.accumulate(x, axis)",
        "add": "x + y",
        "sub": "x - y",
        "mul": "x * y",
        "div": "x / y; np.trunc(x / y) of integers",
        "rem": "np.fmod(x, y)",
        "neg": "-x",
        "pow": "x ** y",
        "integer_pow": "x ** n",
        "max": "np.maximum(x, y)",
        "min": "np.minimum(x, y)",
        "eq": "x == y",
        "ne": "x != y",
        "lt": "x < y",
        "le": "x <= y",
        "gt": "x > y",
        "ge": "x >= y",
        "is_finite": "np.isfinite(x)",
        "population_count": "np.bitwise_count(x)",
        "shift_left": "x << n",
        "shift_right_arithmetic": "x >> n",
        "rsqrt": "1 / np.sqrt(x)",
        "logistic": "bw.nn.sigmoid(x)",
        "erf": "bw.scipy.special.erf(x)",
        "erfc": "bw.scipy.special.erfc(x)",
        "erf_inv": "bw.scipy.special.erfinv(x)",
        "lgamma": "bw.scipy.special.gammaln(x)",
        "digamma": "bw.scipy.special.digamma(x)",
        "igamma": "bw.scipy.special.gammainc(a, x)",
        "igammac": "bw.scipy.special.gammaincc(a, x)",
        "betainc": "bw.scipy.special.betainc(a, b, x)",
        "bessel_i0e": "bw.scipy.special.i0e(x)",
        "bessel_i1e": "bw.scipy.special.i1e(x)",
        "zeta": "bw.scipy.special.zeta(x, q)",
        "linalg": "np.linalg, bw.scipy.linalg",
        "optimization_barrier": "nothing: what is computed has the same bits wherever it is computed",
        "Precision": "nothing: products are computed in the precision of their operands",
        **dict.fromkeys("psum pmean pmax pmin all_gather all_to_all ppermute axis_index axis_size".split(), _NO_AXIS_NAMES),
    },
    "tree_util": {"": "bw.tree"},
    "flatten_util": {"": _FLAT},
    "config": {"": "nothing for float64: results have NumPy's dtypes; settings are environment variables (docs/tour.md)"},
    "debug": {"": "print(x.shape) while tracing; bw.pure_callback, whose result is used, when the program runs",
              "visualize_array_sharding": "nothing: programs run on the CPU"},
    "ad_checkpoint": {"": "bw.checkpoint", "checkpoint_name": "bw.checkpoint(fun, policy=lambda op: op == 'matmul'), by the ops' names"},
    "checkpoint_policies": {
        "": "bw.checkpoint(fun, policy=lambda op: op == 'matmul'), by the names of the ops that are kept",
        "nothing_saveable": "bw.checkpoint(fun), which keeps nothing",
        "everything_saveable": "the function itself, without bw.checkpoint",
    },
    "test_util": {"": "bw.check_grads(fun, args, order=2)"},
    "dtypes": {"": "NumPy's dtypes", "float0": "None, which is the cotangent of an integer argument"},
    "experimental": {"": "docs/coming_from.md says what there is",
                     "sparse": "bw.sparse_jacobian, bw.sparse_hessian; bw.scipy.sparse", "ode": "bw.scipy.integrate.odeint",
                     "io_callback": "bw.pure_callback, whose result is used; what has effects is for outside of the function"},
    "extend": {"": "bw.custom_vjp, bw.custom_jvp; bw.primitive for what cannot be traced"},
    "misc": {"": "a line of bw.tree.map: params = bw.tree.map(lambda p, d: p - rate * d, params, gradients)", "flatten": _FLAT,
             "fixed_points": "bw.custom_root"},
}

# Attributes of compiled functions and programs.
ATTRIBUTES: Mapping[str, str] = {
    "compile": "nothing: a program is compiled when it is first called",
    "compiler_ir": "as_text('llvm')",
    "trace": "lower(*args), a program; as_text('forward', *args)",
    "eval_shape": "bw.eval_shape(fun, *args)",
    "inspect_llvm": "as_text('llvm', *args)",
    "inspect_asm": "as_text('asm', *args)",
    "forward": "program(*args) computes the value, program.vjp(*args) the value and a pullback; program.graph is the forward graph",
    "grad": "program.backward(*args), or bw.grad(fun)",
    "value_and_grad": "program.value_and_backward(*args), or bw.value_and_grad(fun)",
    "zero_grad": "nothing: gradients are results; buffer[:] = 0 where into= adds to one",
    "parameters": "the arguments: parameters are passed to the function, in a dict or dataclass",
    "state_dict": "the arguments: parameters are passed to the function, in a dict or dataclass",
    "save": "pickle.dumps; as NumPy source, dump('gradient.py')",
    "serialize": "pickle.dumps; as NumPy source, dump('gradient.py')",
    "export": "dump('gradient.py'), which needs NumPy only",
    "to_c": "as_text('py') for NumPy source, as_text('llvm') for LLVM's language",
}

_LOOP = {"f": "body=", "unroll": f"{_NOTHING}: the loop is a native loop; a Python loop with autoloop=False is unrolled",
         "_split_transpose": _NOTHING}
_BRANCH = {"operand": "operands are passed by position, behind the branches", "linear": _NOTHING}
_TRANSFORM = {
    "argnum": "argnums=",
    "argnames": "argnums=, positions of arguments",
    "allow_int": "leave integers out of argnums: they have no gradient",
    "reduce_axes": f"{_NOTHING}: {_NO_AXIS_NAMES}",
    "axis_name": _NO_AXIS_NAMES,
    "spmd_axis_name": _NO_AXIS_NAMES,
    "in_dims": "in_axes=",
    "out_dims": "out_axes=",
    "chunk_size": f"{_NOTHING}; bw.map(fun, xs) computes one after the other",
    "create_graph": f"{_NOTHING}: derivatives are differentiated again by bw.grad(bw.grad(fun))",
    "randomness": "split keys, and map over them: bw.random.split(key, n)",
    "strategy": "bw.jacfwd and bw.jacrev choose the mode",
    "vectorize": f"{_NOTHING}: all rows are computed at once",
}
_RULE = {"symbolic_zeros": f"{_NOTHING}: cotangents and tangents are arrays", "optimize_remat": _NOTHING}

ANY_OTHER = "*"                  # in place of a keyword: all that the function has not
# Keywords, by the function they are given to; those of _TRANSFORM to any transform.
KEYWORDS: Mapping[str, Mapping[str, str]] = {
    "jit": {
        **dict.fromkeys(("donate_argnums", "donate_argnames"),
                        f"{_NOTHING}: memory that nothing reads any more is used again; what is assigned to an argument is written there"),
        "inline": f"{_NOTHING}: compiled functions that are called in others are part of them",
        "keep_unused": f"{_NOTHING}: arguments that are not used cost nothing",
        **dict.fromkeys(("device", "backend", "in_shardings", "out_shardings"), _ONE_DEVICE),
        "compiler_options": f"{_NOTHING}; BW_TARGET in the environment says what the code is for",
        "abstracted_axes": "arguments of another shape have a program of their own",
        "nopython": _NOTHING, "nogil": _NOTHING, "fullgraph": f"{_NOTHING}: a function is one program",
        "cache": f"{_NOTHING}: code is kept on disk (BW_CACHE_DIR)",
        "parallel": f"{_NOTHING}: long loops run on all cores (bw.set_num_threads)",
        "fastmath": f"{_NOTHING}: operations have NumPy's values",
        "dynamic": "arguments of another shape have a program of their own",
        "mode": _NOTHING,
    },
    "compile": {"backend": _ONE_DEVICE, "mode": _NOTHING, "fullgraph": f"{_NOTHING}: a function is one program",
                "dynamic": "arguments of another shape have a program of their own",
                "argnums": "wrt=", "static_argnums": "pass the value among the arguments: what is no array or number is compiled in",
                ANY_OTHER: "examples of arguments are passed by position; of one that is passed by name only, "
                           "bw.compile(lambda x, y: fun(x, y=y), x, y)"},
    "scan": _LOOP,
    "fori_loop": {"body_fun": "body=", "init_val": "init=", "unroll": _LOOP["unroll"]},
    "while_loop": {"init_val": "init="},
    "cond": _BRANCH,
    "switch": _BRANCH,
    "map": {"f": "fun=", "batch_size": f"{_NOTHING}: elements are computed one after the other; bw.vmap computes all at once"},
    "associative_scan": {"fn": "fun=", "elems": "xs="},
    "pure_callback": {
        "callback": "fun=", "result_shape_dtypes": "result_spec=",
        "vmap_method": "vectorized=True for 'broadcast_all' and 'expand_dims'; nothing for 'sequential'",
        "sharding": _ONE_DEVICE,
    },
    "checkpoint": {
        "prevent_cse": f"{_NOTHING}: what is computed again is never merged with what was computed before",
        "concrete": _NOTHING, "use_reentrant": _NOTHING, "preserve_rng_state": f"{_NOTHING}: random numbers are functions of keys",
    },
    "defvjp": _RULE,
    "defjvp": _RULE,
    "key": {"impl": f"{_NOTHING}: there is one generator, threefry2x32"},
}


# Shorter names of parameters, which are taken as well.
ALSO: Mapping[str, Mapping[str, str]] = {
    "fori_loop": {"lo": "lower", "hi": "upper"},
    "while_loop": {"cond": "cond_fun", "body": "body_fun"},
    "cond": {"t": "true_fun", "f": "false_fun"},
    "switch": {"i": "index"},
}


class Namespace:
    """A namespace of another library that does not exist here: each of its names is an AttributeError with what to write instead."""

    def __init__(self, name: str, known: Callable[[], Iterable[str]]) -> None:
        self._name = name
        self._known = known                        # names of bwcompiler itself

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        where = f"bw.{self._name}"
        instead = NAMESPACES[self._name]
        hint = instead.get(name) or _same_elsewhere(name, self._name, self._known) or instead[""]
        raise _error(f"{where}.{name} does not exist\n  hint: {hint}", name)

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"bw.{self._name} does not exist\n  hint: {NAMESPACES[self._name]['']}")

    def __repr__(self) -> str:
        return f"<bw.{self._name} does not exist; instead: {NAMESPACES[self._name]['']}>"


def _same_elsewhere(name: str, space: str, known: Callable[[], Iterable[str]]) -> str:
    """The name in bwcompiler itself, or in NumPy."""
    if space == "tree_util":
        own = name.removeprefix("tree_")
        return f"bw.tree.{own}" if f"tree.{own}" in known() else NAMES["bw.tree"].get(own, "")
    if name in known():
        return f"bw.{name}"
    return f"np.{name}" if space == "lax" and _is_numpy(name) else ""


def _is_numpy(name: str) -> bool:
    return callable(getattr(np, name, None))


def missing(where: str, name: str, known: Callable[[], Iterable[str]], hint: str | None = None) -> Any:
    """What a module gives for a name that it does not have: raises, with what to write instead or the known names that are alike.

    A namespace of another library is an object that does so for each name in it.
    """
    if where == "bw" and name in NAMESPACES:
        return Namespace(name, known)
    if name.startswith("__"):                      # protocols that others ask every module for
        raise AttributeError(f"{where} has no attribute {name!r}", name=name)
    hint = hint or NAMES.get(where, {}).get(name) or (_same_elsewhere(name, "tree_util", known) if name.startswith("tree_") else None)
    if hint is None:
        alike = difflib.get_close_matches(name, list(known()), 3, 0.7)
        hint = f"there is {', '.join([f'{where}.{one}' for one in alike])}" if alike else ""
    if not hint and _is_numpy(name):
        hint = f"np.{name}"
    raise _error(f"{where}.{name} does not exist" + (f"\n  hint: {hint}" if hint else ""), name)


def missing_attribute(owner: object, name: str) -> AttributeError:
    """The error of an attribute that a compiled function has not."""
    hint = ATTRIBUTES.get(name)
    kind = type(owner).__name__
    return AttributeError(f"{kind!r} object has no attribute {name!r}" + (f"\n  hint: {hint}" if hint else ""), name=name, obj=owner)


def _error(message: str, name: str) -> Exception:
    """An AttributeError; the ImportError of `from bwcompiler import name`, where Python would drop the message of the first."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("bwcompiler"):
        frame = frame.f_back
    operation = dis.opname[frame.f_code.co_code[frame.f_lasti]] if frame.f_lasti >= 0 else ""
    if operation == "IMPORT_FROM" or frame.f_code.co_name == "_handle_fromlist":
        return ImportError(message, name=name)
    return AttributeError(message, name=name)


def keyword_hint(function: str, keyword: str) -> str:
    """What to write instead of a keyword, as a line of a message; nothing where it is not known."""
    known = KEYWORDS.get(function, {})
    hint = known.get(keyword) or _TRANSFORM.get(keyword) or known.get(ANY_OTHER)
    return f"\n  hint: {hint}" if hint else ""


def says_instead(fun: Fun) -> Fun:
    """The function, which says of keywords that other libraries' functions of its name have what to write instead (TypeError), and takes
    those of `ALSO`."""
    own = inspect.signature(fun).parameters.keys()
    foreign, refuses_all = KEYWORDS[fun.__name__].keys() - own, ANY_OTHER in KEYWORDS[fun.__name__]
    also = ALSO.get(fun.__name__, {})

    @functools.wraps(fun)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for keyword in kwargs:
            if keyword in foreign or (refuses_all and keyword not in own):
                raise TypeError(f"{fun.__name__} has no keyword {keyword!r}{keyword_hint(fun.__name__, keyword)}")
        if also and not also.keys().isdisjoint(kwargs):
            kwargs = {keyword if also.get(keyword) in (None, *kwargs) else also[keyword]: value for keyword, value in kwargs.items()}
        return fun(*args, **kwargs)
    return checked  # type: ignore[return-value]
