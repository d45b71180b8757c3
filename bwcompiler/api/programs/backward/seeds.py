"""Seeds: matches `grad_outputs`, as the caller passed it, with the outputs of a function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bwcompiler import tree
from bwcompiler.errors import SeedError, at
from bwcompiler.ir.op import Value
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED, ONE


def seeds_of(outputs: Sequence[Value], result_tree: Any, grad_outputs: Any, called: str = "grad_outputs") -> list[tuple[str | None, Any]]:
    """Per output the kind of its seed and the given array; `result_tree` has the number of an output at every leaf.

    called: the user's expression for the seed, for errors.
    """
    if grad_outputs is None:
        if not any(output.dtype.is_differentiable for output in outputs):         # None is the only possible seed, and means zero
            return [(None, None)] * len(outputs)
        if len(outputs) != 1 or outputs[0].shape != () or not outputs[0].dtype.is_float:
            raise missing_seed(outputs)
        return [(ONE, None)]
    pairs = match_tree(result_tree, grad_outputs, called)
    for (leaf, path), output in zip(pairs, outputs, strict=True):
        if leaf is not None and not output.dtype.is_differentiable:
            raise SeedError(at(output.source, f"{path}: the output is of dtype {output.dtype.numpy}, which has no derivative\n"
                               "  hint: None as its seed"))
    return [(None, None) if leaf is None else (INPUT_SEED, concrete_seed(leaf, output, path))
            for (leaf, path), output in zip(pairs, outputs, strict=True)]


def filled(outputs: Sequence[Value], seeds: Sequence[tuple[str | None, Any]]) -> list[Any]:
    """One array per differentiable output: ones, zeros or the given seed."""
    return [array if kind == INPUT_SEED else np.full(output.shape, 1.0 if kind == ONE else 0.0, output.dtype.numpy)
            for (kind, array), output in zip(seeds, outputs, strict=True) if output.dtype.is_differentiable]


def match_tree(whole: Any, seed: Any, path: str) -> list[tuple[Any, str]]:
    """Pairs (seed leaf or None, path) for every output; `whole` is the output tree with a number at every leaf."""
    if isinstance(whole, int):
        return [(seed, path)]
    leaves = tree.leaves(whole)
    if seed is None:
        return [(None, path) for _ in leaves]
    if isinstance(whole, tuple | list):
        if not isinstance(seed, tuple | list) or len(seed) != len(whole):
            got = f"{len(seed)} entries" if isinstance(seed, tuple | list) else type(seed).__name__
            raise SeedError(f"{path}: the function returns {len(whole)} outputs, so it must be a tuple of {len(whole)} seeds; got {got}")
        return [pair for k, (part, one) in enumerate(zip(whole, seed, strict=True)) for pair in match_tree(part, one, f"{path}[{k}]")]
    if isinstance(whole, dict):
        if not isinstance(seed, dict) or set(seed) != set(whole):
            raise SeedError(f"{path}: it must be a dict with the keys of the output, {sorted(whole)}")
        return [pair for key in sorted(whole) for pair in match_tree(whole[key], seed[key], f"{path}[{key!r}]")]
    seed_leaves = tree.leaves(seed)
    if len(seed_leaves) != len(leaves):
        raise SeedError(f"{path}: it must have the structure of the output")
    return [(leaf, f"{path}[{k}]") for k, leaf in enumerate(seed_leaves)]


def check_seed_type(shape: tuple[Any, ...], dtype: Any, output: Value, path: str) -> None:
    """Raise SeedError unless a seed of this shape and NumPy dtype fits the output."""
    if shape != output.shape:
        raise SeedError(at(output.source, f"{path} has shape {shape}, but the output has shape {output.shape}: a seed is the "
                           "cotangent of the output and has its shape"))
    if np.dtype(dtype).newbyteorder("=") != output.dtype.numpy:
        raise SeedError(at(output.source, f"{path} has dtype {dtype}, but the output has dtype {output.dtype.numpy}\n"
                           f"  hint: seed.astype(np.{output.dtype.numpy})"))


def number_seed(leaf: Any, output: Value) -> Any:
    """Python numbers and lists take the output's dtype; anything else is returned as it is."""
    if isinstance(leaf, bool | int | float | complex | list | tuple) and not isinstance(leaf, np.generic):
        return np.array(leaf, output.dtype.numpy)
    return leaf


def concrete_seed(leaf: Any, output: Value, path: str) -> Any:
    """A seed as an array of exactly the output's shape and dtype."""
    array = np.asarray(number_seed(leaf, output))
    check_seed_type(array.shape, array.dtype, output, path)
    return array


def missing_seed(outputs: Sequence[Value]) -> SeedError:
    """The error for a missing seed that is needed."""
    shapes = ", ".join(str(output.shape) for output in outputs)
    if len(outputs) == 1 and outputs[0].dtype.is_complex:
        return SeedError(at(outputs[0].source, "a seed can be left out only for a real output; the output is of dtype "
                            f"{outputs[0].dtype.numpy}\n  hint: pass grad_outputs=, or make the output real (np.abs(z), z.real)"))
    return SeedError(at(outputs[0].source if outputs else None,
                        f"a seed can be left out only for one scalar output; the outputs have shape {shapes}\n"
                        "  hint: pass grad_outputs= (an array shaped like the output), reduce the output to a scalar (.sum()),"
                        " or ask for the whole derivative with bw.jacobian"))
