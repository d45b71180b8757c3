"""PyTorch's ten-parameter net (two convolutions, three linear layers), its output of shape (1, 10) and its gradients.

Backward of a non-scalar output needs a seed; a loss is a scalar and needs none; gradients of several batches add up in the
caller's own buffers.  Expected: SeedError without a seed; with one, ten gradients in the shapes of the parameters, the last of
which is the seed itself; the mean gradient of three batches, to float32's accuracy.
"""

import numpy as np

import bwcompiler as bw
from bwcompiler import nn

rng = np.random.default_rng(0)
SHAPES = [(6, 1, 5, 5), (6,), (16, 6, 5, 5), (16,), (120, 400), (120,), (84, 120), (84,), (10, 84), (10,)]
parameters = [rng.uniform(-0.1, 0.1, shape).astype(np.float32) for shape in SHAPES]


def net(parameters, x):
    w1, b1, w2, b2, w3, b3, w4, b4, w5, b5 = parameters
    x = nn.max_pool2d(nn.relu(nn.conv2d(x, w1, b1)), 2)
    x = nn.max_pool2d(nn.relu(nn.conv2d(x, w2, b2)), 2)
    x = x.reshape(len(x), -1)
    x = nn.relu(nn.linear(x, w3, b3))
    x = nn.relu(nn.linear(x, w4, b4))
    return nn.linear(x, w5, b5)


def loss(parameters, x, target):
    return nn.mse_loss(net(parameters, x), target)


x = rng.standard_normal((1, 1, 32, 32)).astype(np.float32)
program = bw.compile(net, parameters, x, wrt=(0,))
print("output:", program(parameters, x).shape, "from", len(parameters), "parameters")

# Without a seed: an error that says what to do
try:
    program.backward(parameters, x)
except bw.errors.SeedError as error:
    print(f"\nbackward without a seed:\n  {error}\n")
else:
    raise AssertionError("backward of a (1, 10) output must ask for a seed")

# With a seed of the output's shape
seed = rng.standard_normal((1, 10)).astype(np.float32)
gradients, x_gradient = program.backward(parameters, x, grad_outputs=seed)
assert [g.shape for g in gradients] == SHAPES and x_gradient is None
assert np.allclose(gradients[-1], seed[0])  # the last bias: the seed itself
print("with a (1, 10) seed: gradient of conv1.bias =", np.round(gradients[1], 4))

# With a loss: a scalar, so no seed
target = rng.standard_normal((1, 10)).astype(np.float32)
with_loss = bw.compile(loss, parameters, x, target, wrt=(0,))
value, (gradients, _, _) = with_loss.value_and_backward(parameters, x, target)
print(f"with mse_loss: loss {value:.4f}, no seed needed")

# Over several batches, in the caller's buffers: what zero_grad() and .grad are
buffers = [np.zeros_like(p) for p in parameters]
total = [np.zeros_like(p) for p in parameters]
for _ in range(3):
    batch = rng.standard_normal(x.shape).astype(np.float32)
    returned, _, _ = with_loss.backward(parameters, batch, target, into=(buffers, None, None), scale=1 / 3)
    assert all(a is b for a, b in zip(returned, buffers, strict=True))
    for sum_, gradient in zip(total, with_loss.backward(parameters, batch, target)[0], strict=True):
        sum_ += gradient / 3
assert all(np.allclose(a, b, rtol=1e-4, atol=1e-7) for a, b in zip(buffers, total, strict=True))
print("mean gradient of three batches, accumulated: conv1.bias =", np.round(buffers[1], 5))
