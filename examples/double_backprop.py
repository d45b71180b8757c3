"""Chainer v3's double backprop: the backward pass is itself differentiable, to any order.

Expected: with t = tanh(x), the derivatives 1 - t², -2t(1 - t²), (1 - t²)(6t² - 2); a gradient penalty whose gradient agrees with
differences to 6 digits; d(backward)/d(seed) = 3x²; the Hessian [[802, -400], [-400, 200]].
"""

import numpy as np

import bwcompiler as bw

# 1. Derivatives of derivatives
derivatives = [np.tanh]
for _ in range(3):
    derivatives.append(bw.grad(derivatives[-1]))
x = 0.3
t = np.tanh(x)
values = [float(d(x)) for d in derivatives]
expected = [t, 1 - t**2, -2 * t * (1 - t**2), (1 - t**2) * (6 * t**2 - 2)]
assert np.allclose(values, expected)
print("tanh and its first three derivatives at 0.3:", np.round(values, 6))

# 2. A gradient penalty (WGAN-GP): the norm of the input's gradient is part of the loss
rng = np.random.default_rng(0)
w1, w2 = rng.standard_normal((4, 8)), rng.standard_normal(8)
batch = rng.standard_normal((16, 4))


def critic(x, w1, w2):
    return np.sum(np.tanh(x @ w1) @ w2)


def penalised_loss(w1, w2, x):
    slope = bw.grad(critic)(x, w1, w2)  # a backward pass inside the function
    norm = np.sqrt(np.sum(slope**2, axis=1))
    return critic(x, w1, w2) / len(x) + 10.0 * np.mean((norm - 1.0) ** 2)


value, (g1, g2) = bw.value_and_grad(penalised_loss, argnums=(0, 1))(w1, w2, batch)  # and one through it
direction = rng.standard_normal(w1.shape)
eps = 1e-6
numeric = (penalised_loss(w1 + eps * direction, w2, batch) - penalised_loss(w1 - eps * direction, w2, batch)) / (2 * eps)
assert np.isclose(numeric, np.sum(g1 * direction), rtol=1e-6)
print(f"gradient penalty: loss {value:.6f}; directional derivative {np.sum(g1 * direction):.6f}, by differences {numeric:.6f}")


# 3. Chainer's own check: the derivative of a backward pass with respect to its seed is the derivative of the forward pass
def backward(seed):
    _, pullback = bw.vjp(lambda x: x**3, np.array([1.0, 2.0, 3.0]))
    return pullback(seed)[0]


by_seed = bw.jacobian(backward)(np.ones(3))
assert np.allclose(by_seed, np.diag([3.0, 12.0, 27.0]))
print("d(backward)/d(seed):", np.diag(by_seed).tolist())


# 4. Second derivatives as a matrix
def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


hessian = bw.hessian(rosenbrock)(np.array([1.0, 1.0]))
assert hessian.tolist() == [[802.0, -400.0], [-400.0, 200.0]]
print("Hessian of Rosenbrock's function at its minimum:", hessian.tolist())
