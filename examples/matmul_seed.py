"""PyTorch's out.backward(gradient): out = x @ a with a given seed, only x differentiated.

Expected: x.grad is [[10, 10, 10], [26, 26, 26]], the sums of the rows of the seed, because a is all ones; a gets None.
"""

import numpy as np

import bwcompiler as bw

x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
a = np.ones((3, 4))
seed = np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])

program = bw.compile(lambda x, a: x @ a, x, a, wrt=(0,))

out = program(x, a)
x_grad, a_grad = program.backward(x, a, grad_outputs=seed)
print("out =", out.tolist())
print("x.grad =", x_grad.tolist())
print("a.grad =", a_grad)

assert np.array_equal(out, x @ a)
assert x_grad.tolist() == [[10.0] * 3, [26.0] * 3]
assert a_grad is None

print("\nThe backward program has nothing in it for a:\n")
print(program.as_text("adjoint"))
