"""Chainer's user-defined functions: a * b with inputs of different shapes, then the same with one's own backward.

Broadcasting goes back as a sum over the broadcast axes, so each gradient has the shape of its own argument: expected are (4, 3)
and (3,) for a and b, the shape of c for every c, and the clipped gradient [-1, 0.5, 1].
"""

import numpy as np

import bwcompiler as bw

rng = np.random.default_rng(0)
a, b = rng.standard_normal((4, 3)), rng.standard_normal((3,))
seed = rng.standard_normal((4, 3))

# 1. Derived by the compiler
program = bw.compile(lambda a, b: a * b, a, b)
ga, gb = program.backward(a, b, grad_outputs=seed)
assert ga.shape == (4, 3) and np.allclose(ga, seed * b)
assert gb.shape == (3,) and np.allclose(gb, (seed * a).sum(axis=0))
print(f"derived:  a {a.shape} * b {b.shape}: ga {ga.shape}, gb {gb.shape}")

for other in [(4, 3), (1, 3), (4, 1), (1, 1), (), (2, 4, 3)]:
    c = rng.standard_normal(other)
    out, pullback = bw.vjp(lambda a, c: a * c, a, c)
    shapes = [gradient.shape for gradient in pullback(np.ones(out.shape))]
    assert shapes == [a.shape, c.shape]
    print(f"          a {a.shape} * c {c.shape} -> {out.shape}: gradients {shapes}")


# 2. The user's own forward and backward
@bw.custom_vjp
def scale_rows(x, s):
    return x * s[:, None]


def forward(x, s):
    return scale_rows(x, s), (x, s)  # the result, and what backward needs of it


def backward(residuals, ct):
    x, s = residuals
    return ct * s[:, None], (ct * x).sum(axis=1)  # one cotangent per argument, of different shapes


scale_rows.defvjp(forward, backward)

s = rng.standard_normal(4)
gx, gs = bw.grad(lambda x, s: np.sum(np.sin(scale_rows(x, s))), argnums=(0, 1))(a, s)
expected = np.cos(a * s[:, None])
assert gx.shape == (4, 3) and np.allclose(gx, expected * s[:, None])
assert gs.shape == (4,) and np.allclose(gs, (expected * a).sum(axis=1))
print(f"one's own: x {a.shape}, s {s.shape}: gx {gx.shape}, gs {gs.shape}")


# 3. A backward that is not the derivative: the identity whose gradient is clipped
@bw.custom_vjp
def clip_gradient(x):
    return x


clip_gradient.defvjp(lambda x: (x, None), lambda _, ct: (np.clip(ct, -1.0, 1.0),))

clipped = bw.grad(lambda x: np.sum(clip_gradient(x) ** 2))(np.array([-3.0, 0.25, 3.0]))
assert clipped.tolist() == [-1.0, 0.5, 1.0]
print("clipped gradient of x**2 at [-3, 0.25, 3]:", clipped)
