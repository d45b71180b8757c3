"""A Gaussian process: the marginal likelihood by a Cholesky factor, its hyperparameters by SciPy with gradients from the function.

80 noisy values of sin(x) on [0, 10] with a squared-exponential kernel; amplitude, length and noise are fitted in logarithms.  Expected: the
noise that was put in (0.2) to within a quarter, and predictions within 0.2 of the truth, which lies in the band of ±3 deviations.
"""

import numpy as np

import bwcompiler as bw

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0.0, 10.0, 80))
y = np.sin(x) + 0.2 * rng.standard_normal(80)


def kernel(p, one, two):
    return np.exp(2 * p["amplitude"]) * np.exp(-0.5 * ((one[:, None] - two) / np.exp(p["length"])) ** 2)


def factor(p, x):
    return np.linalg.cholesky(kernel(p, x, x) + np.exp(2 * p["noise"]) * np.eye(x.size))


def negative_log_likelihood(p, x, y):
    lower = factor(p, x)
    whitened = bw.scipy.linalg.solve_triangular(lower, y, lower=True)
    return 0.5 * whitened @ whitened + np.sum(np.log(np.diagonal(lower))) + 0.5 * x.size * np.log(2 * np.pi)


@bw.jit
def predict(p, x, y, at):
    lower = factor(p, x)
    across = bw.scipy.linalg.solve_triangular(lower, kernel(p, x, at), lower=True)
    mean = across.T @ bw.scipy.linalg.solve_triangular(lower, y, lower=True)
    return mean, np.sqrt(np.exp(2 * p["amplitude"]) - np.sum(across**2, axis=0))


start = {"amplitude": 0.0, "length": 0.0, "noise": 0.0}
bw.check_grads(lambda p: negative_log_likelihood(p, x, y), (start,), order=1)
found = bw.scipy.optimize.minimize(negative_log_likelihood, start, args=(x, y), method="trust-exact")
fitted = {name: np.exp(value) for name, value in found.x.items()}
print(f"{found.nit} steps of Newton's method:", {name: round(float(value), 3) for name, value in fitted.items()})
assert found.success and abs(fitted["noise"] - 0.2) < 0.05

at = np.linspace(0.5, 9.5, 50)
mean, deviation = predict(found.x, x, y, at)
print("largest error:", np.abs(mean - np.sin(at)).max().round(3), "largest deviation:", deviation.max().round(3))
assert np.abs(mean - np.sin(at)).max() < 0.2 and np.all(np.abs(mean - np.sin(at)) < 3 * deviation)

slope = bw.vmap(bw.grad(lambda at: predict(found.x, x, y, at[None])[0][0]))(at)          # of the prediction, one point at a time
print("slopes:", slope[:3].round(2), "cosines:", np.cos(at[:3]).round(2))
assert np.abs(slope - np.cos(at)).max() < 0.6
