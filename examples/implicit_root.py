"""Differentiating a solution by the equation that it solves: an equilibrium fitted to data, without derivatives of the solver's steps.

Two species, each held down by the other: u = a / (1 + v²), v = b / (1 + u²).  The equilibrium of (a, b) is found by Newton's method in a
native loop, and differentiated by `bw.custom_root`; (a, b) are then found for which it lies at a given place.  Expected: the derivative
of the formula at hand, and (a, b) to ten digits in a few steps of Newton's method on the outer equation.
"""

import numpy as np

import bwcompiler as bw


def balance(x, a, b):
    u, v = x
    return np.array([u - a / (1 + v**2), v - b / (1 + u**2)])


def equilibrium(a, b):
    def newton(f, x):
        def unfinished(state):
            x, k = state
            return (np.abs(f(x)).max() > 1e-13) & (k < 50)

        def improve(state):
            x, k = state
            return x - np.linalg.solve(bw.jacobian(f)(x), f(x)), k + 1

        return bw.while_loop(unfinished, improve, (x, 0))[0]

    tangent_solve = lambda g, y: np.linalg.solve(bw.jacobian(g)(y), y)
    return bw.custom_root(lambda x: balance(x, a, b), np.array([2.0, 0.5]), newton, tangent_solve)


parameters = np.array([2.0, 1.0])
at = bw.jit(lambda p: equilibrium(p[0], p[1]))(parameters)
slopes = bw.jacobian(lambda p: equilibrium(p[0], p[1]))(parameters)
print("equilibrium:", at.round(6), "residual:", np.abs(balance(at, *parameters)).max())
by_hand = -np.linalg.solve(bw.jacobian(balance)(at, *parameters),
                           np.stack(bw.jacobian(balance, (1, 2))(at, *parameters), axis=1))
print("slopes:", slopes.round(6).tolist())
assert np.allclose(slopes, by_hand, rtol=1e-10)

# The same root by SciPy, called back by the program; and which species loses as a grows, by vmap of the derivative.
by_scipy = bw.jacobian(lambda p: bw.scipy.optimize.root(balance, np.array([2.0, 0.5]), args=(p[0], p[1])).x)(parameters)
assert np.allclose(by_scipy, slopes, rtol=1e-6)
many = bw.vmap(lambda a: bw.jvp(lambda a: equilibrium(a, 1.0), (a,), (1.0,))[1])(np.linspace(1.5, 3.0, 4))
print("d(u, v)/da along a:", many.round(3).tolist())
assert (many[:, 0] > 0).all() and (many[:, 1] < 0).all()

# The outer equation: for which (a, b) does the equilibrium lie at the place aimed for?
goal = np.array([1.8, 0.3])
found = bw.scipy.optimize.root(lambda p: equilibrium(p[0], p[1]) - goal, parameters)
u, v = goal
print("parameters:", found.x.round(6), "evaluations:", found.nfev)
assert np.allclose(found.x, [u * (1 + v**2), v * (1 + u**2)], rtol=1e-9)
