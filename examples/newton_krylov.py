"""Newton-Krylov for a partial differential equation: a sparse Jacobian for the preconditioner, its products by bw.jvp for the solver.

The Bratu problem, Δu + λ exp(u) = 0 on the unit square with zero boundary, on 127 x 127 points (16,129 unknowns, a Jacobian of five
diagonals).  Expected: a residual below 1e-10 in at most eight Newton steps, and max u = 0.5569 for λ = 5.
"""

import numpy as np
import scipy.sparse.linalg

import bwcompiler as bw

N, STRENGTH = 127, 5.0
h = 1.0 / (N + 1)


def residual(u):
    """The equation at every point, times h²."""
    around = np.pad(u, 1)
    neighbours = around[2:, 1:-1] + around[:-2, 1:-1] + around[1:-1, 2:] + around[1:-1, :-2]
    return neighbours - 4.0 * u + STRENGTH * h * h * np.exp(u)


jacobian = bw.sparse_jacobian(residual)
u = np.zeros((N, N))
print(f"{jacobian.pattern(u).nnz} elements of {u.size}², from {jacobian.products(u)} products")
factor = scipy.sparse.linalg.splu(jacobian(u).tocsc())          # of the first Jacobian, for all steps
preconditioner = scipy.sparse.linalg.LinearOperator((u.size, u.size), factor.solve)

for number in range(8):
    value, derivative = bw.linearize(residual, u)
    size = np.abs(value).max()
    print(f"step {number}: residual {size:.1e}")
    if size < 1e-10:
        break
    operator = scipy.sparse.linalg.LinearOperator((u.size, u.size), lambda v, d=derivative: d(v.reshape(N, N)).ravel(), dtype=float)
    change, status = scipy.sparse.linalg.gmres(operator, -value.ravel(), rtol=1e-6, M=preconditioner)
    assert status == 0
    u = u + change.reshape(N, N)

assert np.abs(residual(u)).max() < 1e-10
v = np.random.default_rng(0).standard_normal((N, N))
assert np.allclose(jacobian(u) @ v.ravel(), bw.jvp(residual, (u,), (v,))[1].ravel())
assert round(float(u.max()), 4) == 0.5569
print("max u:", u.max().round(4))
