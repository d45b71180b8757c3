"""Names that users of JAX look for and that do not exist yet: what to write until they do."""

from __future__ import annotations

from typing import NoReturn

INSTEAD = {
    "vmap": "write the function for a leading axis (x[..., None], axis=-1, np.einsum), or np.stack([f(row) for row in x])",
    "jvp": "bw.vjp, or products with bw.jacobian",
    "jacfwd": "bw.jacobian",
    "linearize": "bw.vjp",
    "hvp": "bw.grad(lambda x: np.sum(bw.grad(f)(x) * v))",
    "custom_jvp": "bw.custom_vjp",
    "checkpoint": "nothing: what is kept between forward and backward programs is chosen by the compiler",
    "pure_callback": "the function outside of the traced one, its result as an argument",
    "primitive": "bw.custom_vjp of NumPy code",
    "random": "np.random outside of the traced function, the numbers as an argument",
    "check_grads": "central differences of the compiled function",
    "sparse_jacobian": "bw.jacobian",
    "sparse_hessian": "bw.hessian",
}


def missing(name: str) -> NoReturn:
    """Raise the AttributeError of `bwcompiler.name`."""
    advice = f"\n  hint: {INSTEAD[name]}" if name in INSTEAD else ""
    exists = "does not exist yet" if name in INSTEAD else "does not exist"
    raise AttributeError(f"bw.{name} {exists}{advice}", name=name)
