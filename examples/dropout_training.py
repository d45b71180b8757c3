"""Training with dropout: random masks are functions of keys, so that a step is one program and a run can be repeated bit for bit.

A net of 2, 64, 64, 2 neurons on two spirals, 400 points, 600 steps of Adam inside one compiled loop.  Expected: more than 97 %
accuracy without dropout at the end, the same bits in a second run, and the mean of many masks close to no mask.
"""

import numpy as np

import bwcompiler as bw

rng = np.random.default_rng(0)
angle = np.sqrt(rng.uniform(0.02, 1.0, 400)) * 3.0 * np.pi
label = np.arange(400) % 2
points = (angle / 10.0)[:, None] * np.stack([np.cos(angle + np.pi * label), np.sin(angle + np.pi * label)], axis=1)
points += 0.01 * rng.standard_normal(points.shape)


def initial(key, sizes=(2, 64, 64, 2)):
    keys = bw.random.split(key, len(sizes) - 1)
    layers = zip(keys, sizes[:-1], sizes[1:], strict=True)
    return [{"w": bw.random.normal(key, (n, m)) * np.sqrt(2.0 / n), "b": np.zeros(m)} for key, n, m in layers]


def net(layers, x, key=None, rate=0.1):
    """Scores; with a key, hidden values are dropped at the rate and the others scaled up."""
    for number, layer in enumerate(layers):
        x = x @ layer["w"] + layer["b"]
        if number + 1 < len(layers):
            x = np.maximum(x, 0.0)
            if key is not None:
                keep = bw.random.bernoulli(bw.random.fold_in(key, number), 1.0 - rate, x.shape)
                x = np.where(keep, x / (1.0 - rate), 0.0)
    return x


def loss(layers, key):
    return bw.nn.cross_entropy(net(layers, points, key), label)


@bw.jit
def train(layers, key):
    zeros = bw.tree.map(lambda leaf: leaf * 0.0, layers)

    def step(state, number):
        layers, mean, square = state
        value, slope = bw.value_and_grad(loss)(layers, bw.random.fold_in(key, number))
        mean = bw.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, slope)
        square = bw.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, slope)
        rate = 0.01 / (1 + number / 300)
        move = lambda p, m, s: p - rate * (m / (1 - 0.9 ** (number + 1))) / (np.sqrt(s / (1 - 0.99 ** (number + 1))) + 1e-8)
        return (bw.tree.map(move, layers, mean, square), mean, square), value

    (layers, _, _), values = bw.scan(step, (layers, zeros, zeros), np.arange(600))
    return layers, values


key = bw.random.key(0)
start = initial(bw.random.fold_in(key, 1))
layers, values = train(start, key)
accuracy = np.mean(np.argmax(net(layers, points), axis=1) == label)
print("loss:", values[[0, 100, 599]].round(3), "accuracy:", accuracy)
assert accuracy > 0.97

again = train(start, key)[1]
assert np.array_equal(values, again) and not np.array_equal(values, train(start, bw.random.key(1))[1])

hidden = lambda key: np.mean(bw.nn.softmax(net(layers, points[:5], key), axis=1), axis=0)
means = np.mean(bw.vmap(hidden)(bw.random.split(key, 2000)), axis=0)                      # 2000 masks as one batch
print("mean over masks:", means.round(2), "without:", np.mean(bw.nn.softmax(net(layers, points[:5]), axis=1), axis=0).round(2))
assert np.allclose(means.sum(), 1.0)
