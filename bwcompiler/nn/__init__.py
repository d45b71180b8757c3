"""Neural network functions on arrays, with PyTorch's layouts, defaults and reductions; axes count as in NumPy."""

from bwcompiler.nn.activations import elu, gelu, leaky_relu, log_softmax, logsumexp, relu, sigmoid, silu, softmax, softplus, tanh
from bwcompiler.nn.convolutions import (
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from bwcompiler.nn.layers import dropout, embedding, layer_norm, linear, one_hot
from bwcompiler.nn.losses import binary_cross_entropy_with_logits, cross_entropy, huber_loss, l1_loss, mse_loss, nll_loss

__all__ = [
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "binary_cross_entropy_with_logits", "conv1d", "conv2d", "conv3d",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cross_entropy", "dropout", "elu", "embedding", "gelu",
    "huber_loss", "l1_loss", "layer_norm", "leaky_relu", "linear", "log_softmax", "logsumexp", "max_pool1d", "max_pool2d",
    "max_pool3d", "mse_loss", "nll_loss", "one_hot", "relu", "sigmoid", "silu", "softmax", "softplus", "tanh",
]
