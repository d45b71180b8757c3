"""LeNet (two convolutions, three linear layers: ten parameters) trained on scikit-learn's handwritten digits.

The whole training step, forward pass, backward pass and Adam update, is one compiled program.  Expected: more than 97 % of the
360 test images, after 15 epochs in a few seconds.
"""

import time

import numpy as np
from sklearn.datasets import load_digits

import bwcompiler as bw
from bwcompiler import nn

BATCH, EPOCHS = 32, 15
SHAPES = [(6, 1, 5, 5), (6,), (16, 6, 5, 5), (16,), (120, 400), (120,), (84, 120), (84,), (10, 84), (10,)]


def net(parameters, x):
    w1, b1, w2, b2, w3, b3, w4, b4, w5, b5 = parameters
    x = nn.max_pool2d(nn.relu(nn.conv2d(x, w1, b1)), 2)
    x = nn.max_pool2d(nn.relu(nn.conv2d(x, w2, b2)), 2)
    x = x.reshape(len(x), -1)
    x = nn.relu(nn.linear(x, w3, b3))
    x = nn.relu(nn.linear(x, w4, b4))
    return nn.linear(x, w5, b5)


def loss(parameters, x, labels):
    return nn.cross_entropy(net(parameters, x), labels)


@bw.jit
def train_step(parameters, mean, variance, step, rate, x, labels):
    value, gradients = bw.value_and_grad(loss)(parameters, x, labels)
    mean = bw.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradients)
    variance = bw.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, variance, gradients)
    rate = rate * np.sqrt(1 - np.float32(0.999) ** step) / (1 - np.float32(0.9) ** step)
    parameters = bw.tree.map(lambda p, m, v: p - rate * m / (np.sqrt(v) + 1e-8), parameters, mean, variance)
    return value, parameters, mean, variance


@bw.jit
def count_correct(parameters, x, labels):
    return np.sum(np.argmax(net(parameters, x), axis=1) == labels)


def load():
    """(x, labels) for training and for testing; 8x8 images enlarged to 32x32."""
    images, labels = load_digits(return_X_y=True)
    x = np.repeat(np.repeat(images.reshape(-1, 1, 8, 8), 4, axis=2), 4, axis=3).astype(np.float32) / 8 - 1
    order = np.random.default_rng(0).permutation(len(x))
    train, test = order[:1437], order[1437:]
    return (x[train], labels[train]), (x[test], labels[test])


def main(epochs=EPOCHS):
    (x, labels), (x_test, labels_test) = load()
    rng = np.random.default_rng(1)
    bounds = [1 / np.sqrt(np.prod(SHAPES[k - k % 2][1:])) for k in range(10)]
    parameters = [rng.uniform(-b, b, shape).astype(np.float32) for b, shape in zip(bounds, SHAPES, strict=True)]
    mean, variance = [np.zeros_like(p) for p in parameters], [np.zeros_like(p) for p in parameters]
    start, step, accuracy = time.perf_counter(), 0, 0.0
    for epoch in range(epochs):
        order, total, rate = rng.permutation(len(x)), 0.0, np.float32(2e-3 * (1 - epoch / epochs))
        for rows in np.split(order[: len(x) // BATCH * BATCH], len(x) // BATCH):
            step += 1
            state = train_step(parameters, mean, variance, np.float32(step), rate, x[rows], labels[rows])
            value, parameters, mean, variance = state
            total += float(value) * BATCH / len(x)
        accuracy = count_correct(parameters, x_test, labels_test) / len(x_test)
        print(f"epoch {epoch + 1:2}  {time.perf_counter() - start:5.1f} s  loss {total:.4f}  test accuracy {accuracy:.1%}", flush=True)
    return accuracy


if __name__ == "__main__":
    bw.set_num_threads(1)  # its matrix products are small; a second thread gains little, and on a busy machine it costs much
    accuracy = main()
    assert accuracy > 0.97, f"LeNet reaches more than 97 % here, got {accuracy:.1%}"
