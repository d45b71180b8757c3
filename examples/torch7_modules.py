"""Torch7's modules: updateOutput, updateGradInput and accGradParameters as separately callable compiled functions.

`wrt=` selects what is computed, and only that; `into=` and `scale=` add `scale * gradient` to the caller's buffers.  Expected:
gradInput is gradOutput @ weight, and after scale 1 and scale 0.5 the parameters' buffers hold 1.5 times their gradients.
"""

import numpy as np

import bwcompiler as bw
from bwcompiler import nn


class Module:
    """A Torch7 module over one compiled program whose first argument is the input, the others its parameters."""

    def __init__(self, function, example_input, *parameters):
        self.parameters = parameters
        self.gradients = [np.zeros_like(parameter) for parameter in parameters]
        self.program = bw.compile(function, example_input, *parameters)

    def updateOutput(self, x):
        return self.program(x, *self.parameters)

    def updateGradInput(self, x, grad_output):
        return self.program.backward(x, *self.parameters, grad_outputs=grad_output, wrt=(0,))[0]

    def accGradParameters(self, x, grad_output, scale=1.0):
        if self.parameters:
            wrt = range(1, 1 + len(self.parameters))
            self.program.backward(x, *self.parameters, grad_outputs=grad_output, wrt=wrt, into=(None, *self.gradients), scale=scale)


rng = np.random.default_rng(0)
x = rng.standard_normal((5, 4))
weight, bias = rng.standard_normal((3, 4)), rng.standard_normal(3)

linear = Module(nn.linear, x, weight, bias)
log_softmax = Module(lambda x: nn.log_softmax(x, 1), np.zeros((5, 3)))

# forward
hidden = linear.updateOutput(x)
output = log_softmax.updateOutput(hidden)
assert np.allclose(hidden, x @ weight.T + bias)
assert np.allclose(np.exp(output).sum(axis=1), 1.0)

# backward: the gradient of the negative log-likelihood of class 0
grad_output = np.zeros((5, 3))
grad_output[:, 0] = -1 / 5
grad_hidden = log_softmax.updateGradInput(hidden, grad_output)
grad_input = linear.updateGradInput(x, grad_hidden)
softmax = np.exp(output)
assert np.allclose(grad_hidden, grad_output - softmax * grad_output.sum(axis=1, keepdims=True))
assert np.allclose(grad_input, grad_hidden @ weight)
assert not linear.gradients[0].any()  # updateGradInput computed nothing for the parameters
print("gradInput:", np.round(grad_input[0], 4))

linear.accGradParameters(x, grad_hidden)
linear.accGradParameters(x, grad_hidden, scale=0.5)
assert np.allclose(linear.gradients[0], 1.5 * grad_hidden.T @ x)
assert np.allclose(linear.gradients[1], 1.5 * grad_hidden.sum(axis=0))
print("gradBias after scale 1 and scale 0.5:", np.round(linear.gradients[1], 4))
