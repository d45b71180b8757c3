"""PyTorch: one backward per element, into one buffer; one backward with a seed; and the full Jacobian of a * a.

Expected: the six backward passes of a[i, j] * a[i, j] add up to 2a, and so does one with a seed of ones; a seed of a gives 2a²;
the Jacobian has shape (2, 3, 2, 3) and 2a on its diagonal.
"""

import numpy as np

import bwcompiler as bw

a = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

# One element at a time: the gradients add up in the buffer
element = bw.compile(lambda a, i, j: a[i, j] * a[i, j], a, 0, 0)
buffer = np.zeros_like(a)
for i in range(2):
    for j in range(3):
        element.backward(a, i, j, into=(buffer, None, None))  # one program for every i and j
assert np.array_equal(buffer, 2 * a)
print("sum over the elements, one backward each:", buffer.tolist())

# All at once: the seed says how much of each element's gradient is wanted
square = bw.compile(lambda a: a * a, a)
(ones_seed,) = square.backward(a, grad_outputs=np.ones_like(a))
(a_seed,) = square.backward(a, grad_outputs=a)
assert np.array_equal(ones_seed, 2 * a)
assert np.array_equal(a_seed, 2 * a**2)
print("seed of ones:", ones_seed.tolist())
print("seed a:", a_seed.tolist())

# Nothing summed: the derivative of every output element by every input element
jacobian = bw.jacobian(lambda a: a * a)(a)
assert jacobian.shape == (2, 3, 2, 3)
assert np.array_equal(jacobian.reshape(6, 6), np.diag(2 * a.ravel()))
print("Jacobian: shape", jacobian.shape, "its diagonal", np.diag(jacobian.reshape(6, 6)).tolist())
