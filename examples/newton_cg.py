"""Newton's method with conjugate gradients: Hessian times vector (bw.hvp), never the Hessian, in one compiled program.

Logistic regression with a penalty, 2000 examples of 100 features.  Expected: quadratic convergence, and a gradient below 1e-9 in at most
ten steps.
"""

import numpy as np

import bwcompiler as bw

rng = np.random.default_rng(0)
features = rng.standard_normal((2000, 100))
labels = np.where(features @ rng.standard_normal(100) + rng.standard_normal(2000) > 0, 1.0, -1.0)


def loss(w, x, y):
    return np.mean(np.logaddexp(0.0, -y * (x @ w))) + 1e-3 * np.sum(w * w)


gradient, product = bw.grad(loss), bw.hvp(loss)


@bw.jit
def newton_step(w, x, y):
    """w - H⁻¹ g, by conjugate gradients to a tenth of the gradient's norm, or its square where that is less."""
    g = gradient(w, x, y)
    size = np.sqrt(g @ g)
    goal = (np.minimum(0.1, size) * size) ** 2

    def unfinished(state):
        _, _, _, rr, k = state
        return (rr > goal) & (k < 100)

    def improve(state):
        step, r, p, rr, k = state
        q = product(w, x, y, p)
        alpha = rr / (p @ q)
        r = r - alpha * q
        new = r @ r
        return step + alpha * p, r, r + new / rr * p, new, k + 1

    step, *_, products = bw.while_loop(unfinished, improve, (np.zeros_like(g), -g, -g, g @ g, 0))
    return w + step, size, products


w, sizes = np.zeros(100), []
for number in range(10):
    w, size, products = newton_step(w, features, labels)
    sizes.append(size)
    print(f"step {number}: gradient {size:.1e}, {products} products with the Hessian")
    if size < 1e-9:
        break
assert sizes[-1] < 1e-9
hessian = bw.hessian(loss)(w, features, labels)
assert np.allclose(product(w, features, labels, w), hessian @ w, rtol=1e-10)
assert np.linalg.eigvalsh(hessian)[0] > 0
