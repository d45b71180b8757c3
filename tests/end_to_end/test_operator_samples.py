"""Functions of `bw.nn` on the samples by which PyTorch tests its own.  Run with `-m peer` where torch is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import nn

pytestmark = pytest.mark.peer

SAMPLES = 6
RENAMED = {"dim": "axis", "keepdim": "keepdims"}
# names of samples that are about something else: noise, objects of PyTorch, arguments in another order
OTHER = {"alpha_dropout", "dropout", "dropout2d", "dropout3d", "embedding", "embedding_bag", "feature_alpha_dropout", "gumbel_softmax", "one_hot",
         "multi_head_attention_forward", "rrelu", "triplet_margin_with_distance_loss"}
VALUE_ONLY = {"ctc_loss",            # PyTorch's derivative is that by the scores whose log_softmax is given
              "max_unpool1d", "max_unpool2d", "max_unpool3d"}     # and here it is given to each of several elements that go to one place


def is_ours(sample: Any) -> bool:
    """Arrays without axes have no axis 0 here, and batch normalisation needs channels; noise is tested elsewhere."""
    if sample.input.ndim == 0 and ("dim" in sample.kwargs or sample.args):
        return False
    return not sample.kwargs.get("dropout_p") and sample.input.shape != (0,)


def arrays(x: Any, replaced: dict[int, Any]) -> Any:
    """An argument with arrays in place of tensors."""
    if id(x) in replaced:
        return replaced[id(x)]
    if hasattr(x, "detach"):
        return x.detach().numpy().copy()
    if isinstance(x, list | tuple):
        return [arrays(one, replaced) for one in x] if isinstance(x, list) else tuple(arrays(one, replaced) for one in x)
    return getattr(np, str(x).removeprefix("torch.")) if type(x).__name__ == "dtype" else x


def tensors(x: Any) -> list[Any]:
    if hasattr(x, "requires_grad"):
        return [x]
    return [one for part in x for one in tensors(part)] if isinstance(x, list | tuple) else []


def operators() -> list[Any]:
    try:
        import torch.testing._internal.common_methods_invocations as samples
    except ImportError:
        return []
    return [op for op in samples.op_db if op.name.startswith("nn.functional.") and op.name[14:] in set(nn.__all__) - OTHER]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", [pytest.param(op, id=f"{op.name[14:]}-{op.variant_test_name}") for op in operators()])
def test_samples(op: Any) -> None:
    torch = pytest.importorskip("torch")
    function, tested = getattr(nn, op.name[14:]), 0
    for sample in op.sample_inputs("cpu", torch.float64, requires_grad=True):
        if tested >= SAMPLES or not is_ours(sample):
            continue
        expected = op(sample.input, *sample.args, **sample.kwargs)
        moving = [one for one in tensors([sample.input, list(sample.args), list(sample.kwargs.values())]) if one.requires_grad]

        def ours(*values: Any, sample: Any = sample, moving: Any = moving) -> Any:
            replaced = {id(tensor): value for tensor, value in zip(moving, values, strict=True)}
            options = {RENAMED.get(key, key): arrays(value, replaced) for key, value in sample.kwargs.items()}
            return function(arrays(sample.input, replaced), *[arrays(one, replaced) for one in sample.args], **options)

        points = [one.detach().numpy().copy() for one in moving]
        found = bw.jit(ours)(*points)
        for one, other in zip(found if isinstance(found, tuple) else (found,), tensors([expected]), strict=True):
            assert np.asarray(one).dtype == other.detach().numpy().dtype
            np.testing.assert_allclose(one, other.detach().numpy(), rtol=1e-7, atol=1e-9)
        tested += 1
        if isinstance(expected, tuple) or not expected.requires_grad or op.name[14:] in VALUE_ONLY:
            continue
        seed = np.random.default_rng(0).standard_normal(tuple(expected.shape))
        theirs = torch.autograd.grad(expected, moving, torch.tensor(seed), allow_unused=True)
        gradients = bw.vjp(ours, *points)[1](seed if seed.ndim else np.float64(seed))
        for one, other, point in zip(gradients, theirs, points, strict=True):
            np.testing.assert_allclose(one, np.zeros_like(point) if other is None else other.numpy(), rtol=1e-6, atol=1e-8)
    assert tested
