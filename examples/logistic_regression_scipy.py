"""Logistic regression on breast-cancer data: SciPy's L-BFGS with value and gradient from one compiled call (jac=True).

Expected: a gradient that agrees with finite differences, a minimum with a gradient below 1e-5, more than 95 % of the 169 test cases.
"""

import numpy as np
from scipy.optimize import check_grad, minimize
from sklearn.datasets import load_breast_cancer

import bwcompiler as bw

features, labels = load_breast_cancer(return_X_y=True)
order = np.random.default_rng(0).permutation(len(labels))
features = (features - features.mean(axis=0)) / features.std(axis=0)
features = np.column_stack([features, np.ones(len(features))])[order]
signs = np.where(labels == 1, 1.0, -1.0)[order]
train, test = slice(0, 400), slice(400, None)
X, y = features[train], signs[train]


@bw.value_and_grad
def objective(w):
    return np.mean(np.logaddexp(0.0, -y * (X @ w))) + 1e-3 * np.sum(w**2)


start = np.zeros(features.shape[1])
error = check_grad(lambda w: objective(w)[0], lambda w: objective(w)[1], start + 0.1)
result = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 500, "ftol": 1e-12, "gtol": 1e-8})
accuracy = np.mean(np.sign(features[test] @ result.x) == signs[test])
steepness = np.abs(objective(result.x)[1]).max()

print(f"gradient against finite differences: {error:.1e}")
print(f"{result.nit} iterations, {result.nfev} calls, loss {result.fun:.6f}, largest gradient entry {steepness:.1e}")
print(f"test accuracy {accuracy:.1%}")
assert error < 1e-5 and steepness < 1e-5 and accuracy > 0.95
