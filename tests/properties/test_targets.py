"""No wrong number on any CPU: small products are exact for every target that this machine can run.

LLVM 22 computes `shuffled` wrongly from the shuffles of its SLP vectoriser in vectors of 512 bits: an index constant of a
`vpermt2pd` is {0, 0, 4, 4} in place of {0, 1, 4, 4}.  None of LLVM's vectorisers is used therefore (`runtime/jit.py`), and shuffles are
written in few forms, all of which are tested (`tests/unit/lowering/test_loops_to_llvm.py`); these tests are to find the next such fault.
`pytest -m slow tests/properties/test_targets.py` runs many more products.
"""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.frontend.tracing.trace import trace
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.passes.derivatives.autodiff import INPUT_SEED, differentiate
from bwcompiler.target import Target, compiling_for
from tests.support.graph_strategies import run_compiled
from tests.support.small_products import FAMILIES, integers, small_product
from tests.support.targets import TARGETS, on_each

# Of each family a few, and 742: with the SLP vectoriser three elements of it are wrong at 512 bits.
DEFAULT = (*range(2 * len(FAMILIES)), 742)
CAMPAIGN = range(10_000, 10_000 + 100 * len(FAMILIES))
CHUNK = 5 * len(FAMILIES)


def shuffled(a, b):
    return (a * b).reshape(4, 2, 4, 4, 3, 3).transpose(1, 0, 2, 3, 4, 5)


def wrong_elements_of_shuffled(target: Target) -> int:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((4, 32, 1)), rng.standard_normal((4, 1, 9))
    with compiling_for(target):
        return int(np.sum(bw.jit(lambda a, b: shuffled(a, b))(a, b) != shuffled(a, b)))


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_shuffled_product(target):
    assert wrong_elements_of_shuffled(target) == 0


def test_gradient_of_a_depthwise_convolution():
    """Where the fault was met: the gradient of the input was off by 2."""
    rng = np.random.default_rng(0)
    x, w = integers(rng, (2, 4, 6, 6), "f8"), integers(rng, (4, 1, 3, 3), "f8")
    ct = integers(rng, (2, 4, 4, 4), "f8")
    expected = np.zeros_like(x)
    for i in range(3):
        for j in range(3):
            expected[:, :, i:i + 4, j:j + 4] += ct * w[None, :, 0, i, j, None, None]
    found = on_each(lambda: [bw.grad(lambda x: np.sum(bw.nn.conv2d(x, w, groups=4) * ct))(x)])
    for target, (gradient,) in found.items():
        np.testing.assert_array_equal(gradient, expected, str(target))


def check_small_product(seed: int) -> None:
    """Value and all gradients, on every target."""
    made = small_product(seed)
    graph = trace(made.fun, list(made.arguments)).graph
    joint = differentiate(graph, tuple(range(len(made.arguments))), [INPUT_SEED] * len(graph.outputs)).graph
    rng = np.random.default_rng(seed + 1)
    arguments = [*made.arguments, *[integers(rng, output.shape, output.dtype.numpy.str) for output in graph.outputs]]
    expected = interpret(joint, arguments)
    for target, results in on_each(lambda: run_compiled(joint, arguments)).items():
        for number, (x, y) in enumerate(zip(results, expected, strict=True)):
            np.testing.assert_array_equal(x, y, f"small_product({seed}), output {number}, {target}")


@pytest.mark.parametrize("seed", DEFAULT)
def test_small_products(seed):
    check_small_product(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(CAMPAIGN.start, CAMPAIGN.stop, CHUNK))
def test_many_small_products(start):
    for seed in range(start, start + CHUNK):
        check_small_product(seed)
