"""Chainer's F.transpose: the backward of np.transpose is the transpose by the inverse permutation.

Expected, for any axes, negative ones and None included: the gradient of x is the seed transposed by argsort(axes mod 3), in the
shape of x.  The graph that the compiler derives is printed for axes (2, 0, 1): one transpose by (1, 2, 0).
"""

import numpy as np

import bwcompiler as bw

x = np.arange(24.0).reshape(2, 3, 4)

for axes in [(1, 0, 2), (2, 0, 1), (-1, 0, 1), (-2, -1, -3), (0, 1, 2), None]:
    program = bw.compile(lambda x, axes=axes: np.transpose(x, axes), x)
    y = program(x)
    seed = np.arange(24.0).reshape(y.shape) * 10

    (gx,) = program.backward(x, grad_outputs=seed)

    inverse = None if axes is None else np.argsort([axis % 3 for axis in axes])
    assert np.array_equal(y, np.transpose(x, axes))
    assert gx.shape == x.shape
    assert np.array_equal(gx, np.transpose(seed, inverse))
    print(f"axes {axes!s:13} x {x.shape} -> y {y.shape}; backward: seed {seed.shape} -> gx {gx.shape}, by axes {inverse}")

program = bw.compile(lambda x: np.transpose(x, (2, 0, 1)), x)
print("\n" + program.as_text("adjoint"))
