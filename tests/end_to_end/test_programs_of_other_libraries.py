"""Programs as users of Chainer, PyTorch and Torch7 write them: their forward and backward, with exact numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import nn
from bwcompiler.errors import SeedError

# ----- Chainer F.transpose
PERMUTATIONS = [*itertools.permutations(range(3)), (-1, 0, 1), (-1, -2, -3), (1, -1, 0), (-3, 2, -2), None]


@pytest.mark.parametrize("axes", PERMUTATIONS, ids=str)
def test_transpose_goes_back_by_the_inverse_permutation(axes: tuple[int, ...] | None) -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    program = bw.compile(lambda x: np.transpose(x, axes), x)
    y = program(x)
    seed = np.arange(24.0).reshape(y.shape) + 100
    (gx,) = program.backward(x, grad_outputs=seed)
    assert np.array_equal(y, np.transpose(x, axes))
    inverse = None if axes is None else np.argsort([axis % 3 for axis in axes])
    assert np.array_equal(gx, np.transpose(seed, inverse))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_methods_and_attributes_of_transposition(dtype: type) -> None:
    x = np.arange(6, dtype=dtype).reshape(2, 3)
    seed = np.arange(6, dtype=dtype).reshape(3, 2)
    for function in (lambda x: x.T, lambda x: x.transpose(), lambda x: x.transpose(1, 0), lambda x: x.transpose((1, 0)),
                     lambda x: np.swapaxes(x, 0, 1), lambda x: np.moveaxis(x, 0, -1)):
        (gx,) = bw.compile(function, x).backward(x, grad_outputs=seed)
        assert np.array_equal(gx, seed.T)
        assert gx.dtype == dtype


# ----- Chainer user-defined function
@pytest.mark.parametrize("shapes", [((2, 3), (3,)), ((2, 3), (2, 1)), ((3,), (2, 3)), ((1, 3), (2, 1)), ((2, 3), ()), ((), ()),
                                    ((4, 1, 3), (2, 1)), ((2, 3), (1, 1)), ((2, 3), (2, 3))], ids=str)
def test_product_of_broadcast_shapes(shapes: tuple[tuple[int, ...], tuple[int, ...]], rng: np.random.Generator) -> None:
    a, b = (rng.standard_normal(shape) for shape in shapes)
    program = bw.compile(lambda a, b: a * b, a, b)
    out = program(a, b)
    seed = rng.standard_normal(np.shape(out))
    ga, gb = program.backward(a, b, grad_outputs=seed)

    def summed(full: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        full = full.sum(axis=tuple(range(full.ndim - len(shape))))
        return full.sum(axis=tuple(k for k, n in enumerate(shape) if n == 1), keepdims=True).reshape(shape)

    assert np.shape(ga) == np.shape(a) and np.shape(gb) == np.shape(b)
    np.testing.assert_allclose(ga, summed(np.asarray(seed * b), np.shape(a)), rtol=1e-13)
    np.testing.assert_allclose(gb, summed(np.asarray(seed * a), np.shape(b)), rtol=1e-13)


def test_own_forward_and_backward_with_gradients_of_different_shapes(rng: np.random.Generator) -> None:
    @bw.custom_vjp
    def multiply_add(x, y, z):
        return x * y + z

    multiply_add.defvjp(lambda x, y, z: (multiply_add(x, y, z), (x, y)),
                        lambda residuals, ct: (ct * residuals[1], (ct * residuals[0]).sum(axis=0), ct.sum()))
    x, y, z = rng.standard_normal((3, 2)), rng.standard_normal(2), np.float64(0.5)
    program = bw.compile(multiply_add, x, y, z)
    seed = rng.standard_normal((3, 2))
    out, (gx, gy, gz) = program.value_and_backward(x, y, z, grad_outputs=seed)
    np.testing.assert_allclose(out, x * y + z)
    np.testing.assert_allclose(gx, seed * y)
    np.testing.assert_allclose(gy, (seed * x).sum(axis=0))
    np.testing.assert_allclose(gz, seed.sum())


def test_own_backward_is_what_runs() -> None:
    @bw.custom_vjp
    def pretend(x):
        return x * 2

    pretend.defvjp(lambda x: (x * 2, None), lambda _, ct: (ct * 100,))
    assert bw.grad(lambda x: np.sum(pretend(x)))(np.ones(2)).tolist() == [100.0, 100.0]


def test_none_from_own_backward_means_zero() -> None:
    @bw.custom_vjp
    def product(x, y):
        return x * y

    product.defvjp(lambda x, y: (x * y, y), lambda y, ct: (ct * y, None))
    gx, gy = bw.grad(lambda x, y: np.sum(product(x, y)), argnums=(0, 1))(np.ones(2), np.full(2, 3.0))
    assert gx.tolist() == [3.0, 3.0]
    assert gy.tolist() == [0.0, 0.0]


# ----- PyTorch matmul with a seed
def test_matmul_with_a_seed() -> None:
    x, a = np.arange(6.0).reshape(2, 3), np.ones((3, 4))
    seed = np.array([[1.0, 2, 3, 4], [5, 6, 7, 8]])
    for program, wrt in ((bw.compile(lambda x, a: x @ a, x, a, wrt=(0,)), None), (bw.compile(lambda x, a: x @ a, x, a), (0,))):
        gx, ga = program.backward(x, a, grad_outputs=seed, wrt=wrt)
        assert gx.tolist() == [[10.0] * 3, [26.0] * 3]
        assert ga is None


def test_a_list_as_seed_takes_the_dtype_of_the_output() -> None:
    x, a = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    gx, _ = bw.compile(lambda x, a: x @ a, x, a, wrt=0).backward(x, a, grad_outputs=[[1, 2, 3, 4], [5, 6, 7, 8]])
    assert gx.dtype == np.float32
    assert gx.tolist() == [[10.0] * 3, [26.0] * 3]


# ----- PyTorch ten-parameter net
SHAPES = [(2, 1, 3, 3), (2,), (3, 2, 3, 3), (3,), (8, 12), (8,), (6, 8), (6,), (10, 6), (10,)]


def net(parameters, x):
    w1, b1, w2, b2, w3, b3, w4, b4, w5, b5 = parameters
    x = nn.max_pool2d(nn.relu(nn.conv2d(x, w1, b1)), 2)
    x = nn.max_pool2d(nn.relu(nn.conv2d(x, w2, b2)), 2)
    x = nn.relu(nn.linear(x.reshape(len(x), -1), w3, b3))
    return nn.linear(nn.relu(nn.linear(x, w4, b4)), w5, b5)


def loss(parameters, x, target):
    return nn.mse_loss(net(parameters, x), target)


@pytest.fixture
def parameters(rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.uniform(-0.5, 0.5, shape) for shape in SHAPES]


@pytest.fixture
def image(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((1, 1, 14, 14))


def test_net_without_seed_fails_with_the_scalar_message(parameters: list[np.ndarray], image: np.ndarray) -> None:
    program = bw.compile(net, parameters, image)
    assert program(parameters, image).shape == (1, 10)
    with pytest.raises(SeedError) as caught:
        program.backward(parameters, image)
    message = str(caught.value)
    for part in ("scalar", "(1, 10)", "grad_outputs=", "bw.jacobian", ".sum()"):
        assert part in message


def test_net_with_a_seed(parameters: list[np.ndarray], image: np.ndarray, rng: np.random.Generator) -> None:
    program = bw.compile(net, parameters, image)
    seed = rng.standard_normal((1, 10))
    gradients, image_gradient = program.backward(parameters, image, grad_outputs=seed)
    assert [g.shape for g in gradients] == SHAPES
    assert image_gradient.shape == image.shape
    directions = [rng.standard_normal(shape) for shape in SHAPES]
    eps = 1e-6
    ahead, behind = ([p + sign * eps * d for p, d in zip(parameters, directions, strict=True)] for sign in (1, -1))
    numeric = np.sum((program(ahead, image) - program(behind, image)) * seed) / (2 * eps)
    analytic = sum(np.sum(g * d) for g, d in zip(gradients, directions, strict=True))
    np.testing.assert_allclose(analytic, numeric, rtol=1e-5)


@pytest.mark.parametrize("shape", [(10,), (1, 9), (10, 1), ()], ids=str)
def test_net_with_a_seed_of_wrong_shape(parameters: list[np.ndarray], image: np.ndarray, shape: tuple[int, ...]) -> None:
    with pytest.raises(SeedError) as caught:
        bw.compile(net, parameters, image).backward(parameters, image, grad_outputs=np.ones(shape))
    assert str(shape) in str(caught.value) and "(1, 10)" in str(caught.value)


def test_net_with_a_loss_accumulates_over_batches(parameters: list[np.ndarray], rng: np.random.Generator) -> None:
    batches = [(rng.standard_normal((2, 1, 14, 14)), rng.standard_normal((2, 10))) for _ in range(3)]
    program = bw.compile(loss, parameters, *batches[0], wrt=(0,))
    buffers = [np.zeros(shape) for shape in SHAPES]
    expected = [np.zeros(shape) for shape in SHAPES]
    for x, target in batches:
        returned, gx, gt = program.backward(parameters, x, target, into=(buffers, None, None))
        assert all(r is b for r, b in zip(returned, buffers, strict=True))
        assert gx is None and gt is None
        for total, gradient in zip(expected, program.backward(parameters, x, target)[0], strict=True):
            total += gradient
    for buffer, total in zip(buffers, expected, strict=True):
        np.testing.assert_allclose(buffer, total, rtol=1e-12, atol=1e-15)


# ----- PyTorch element by element
A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def test_one_backward_per_element_into_one_buffer(compilations: list[str]) -> None:
    program = bw.compile(lambda a, i, j: a[i, j] * a[i, j], A, 0, 0)
    buffer = np.zeros_like(A)
    for i in range(2):
        for j in range(3):
            program.backward(A, i, j, into=(buffer, None, None))
    assert np.array_equal(buffer, 2 * A)
    assert len(compilations) == 1


def test_seed_of_ones_and_seed_a() -> None:
    program = bw.compile(lambda a: a * a, A)
    assert np.array_equal(program.backward(A, grad_outputs=np.ones_like(A))[0], 2 * A)
    assert np.array_equal(program.backward(A, grad_outputs=A)[0], 2 * A**2)


def test_full_jacobian() -> None:
    jacobian = bw.jacobian(lambda a: a * a)(A)
    assert jacobian.shape == (2, 3, 2, 3)
    assert np.array_equal(jacobian.reshape(6, 6), np.diag(2 * A.ravel()))


# ----- Torch7 modules
def test_linear_in_two_parts(rng: np.random.Generator) -> None:
    x, w, b, seed = (rng.standard_normal(shape) for shape in ((5, 4), (3, 4), (3,), (5, 3)))
    program = bw.compile(nn.linear, x, w, b)
    np.testing.assert_allclose(program(x, w, b), x @ w.T + b)
    gx, gw, gb = program.backward(x, w, b, grad_outputs=seed, wrt=(0,))
    np.testing.assert_allclose(gx, seed @ w)
    assert gw is None and gb is None
    buffers = [np.ones_like(w), np.ones_like(b)]
    gx, *_ = program.backward(x, w, b, grad_outputs=seed, wrt=(1, 2), into=(None, *buffers), scale=0.25)
    assert gx is None
    np.testing.assert_allclose(buffers[0], 1 + 0.25 * seed.T @ x)
    np.testing.assert_allclose(buffers[1], 1 + 0.25 * seed.sum(axis=0))


def test_log_softmax_backward(rng: np.random.Generator) -> None:
    x, seed = rng.standard_normal((5, 3)), rng.standard_normal((5, 3))
    program = bw.compile(lambda x: nn.log_softmax(x, 1), x)
    out, (gx,) = program.value_and_backward(x, grad_outputs=seed)
    np.testing.assert_allclose(np.exp(out).sum(axis=1), 1.0)
    np.testing.assert_allclose(gx, seed - np.exp(out) * seed.sum(axis=1, keepdims=True), rtol=1e-12)


# ----- Chainer double backprop
def test_backward_of_backward(rng: np.random.Generator) -> None:
    x, w = rng.standard_normal((4, 3)), rng.standard_normal((3, 2))

    def penalty(x, w):
        slope = bw.grad(lambda x, w: np.sum(np.tanh(x @ w)))(x, w)
        return np.sum(slope**2)

    gx, gw = bw.grad(penalty, argnums=(0, 1))(x, w)
    t = np.tanh(x @ w)
    slope = (1 - t**2) @ w.T
    second = (2 * slope @ w) * (-2 * t * (1 - t**2))
    np.testing.assert_allclose(gx, second @ w.T, rtol=1e-12)
    np.testing.assert_allclose(gw, x.T @ second + 2 * slope.T @ (1 - t**2), rtol=1e-12)


def test_derivatives_to_fifth_order() -> None:
    function = lambda x: x**6
    for k, expected in enumerate((6.0, 30.0, 120.0, 360.0, 720.0)):
        function = bw.grad(function)
        np.testing.assert_allclose(function(2.0), expected * 2.0 ** (5 - k))
