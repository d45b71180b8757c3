"""Neural network functions on arrays, with PyTorch's layouts, defaults and reductions; axes count as in NumPy.

PyTorch's keywords (`input`, `target`, `weight`, `bias`, `dim`, `keepdim`) are accepted where functions here use other names.

Unless a docstring says otherwise: arguments are arrays of real floating-point numbers, activations take any shape, and results have the
dtype to which NumPy promotes the floating-point arguments (float16 and float32 are kept); integers become float64.  Functions raise
DTypeError for other dtypes (complex numbers, strings), ShapeError (a ValueError) for shapes that do not fit, numpy.exceptions.AxisError
for axes that do not exist, and TypeError for unknown keywords.

The functions are composed of NumPy's functions and of ops, one file per subject; `activations.py` is the simplest.
"""

from typing import Any

from bwcompiler import spellings
from bwcompiler.nn.activations import (
    elu,
    gelu,
    glu,
    leaky_relu,
    log_softmax,
    logsigmoid,
    logsumexp,
    mish,
    relu,
    sigmoid,
    silu,
    softmax,
    softmin,
    softplus,
    softsign,
    tanh,
    tanhshrink,
)
from bwcompiler.nn.attention import multi_head_attention_forward, scaled_dot_product_attention
from bwcompiler.nn.convolutions import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from bwcompiler.nn.distances import (
    cosine_embedding_loss,
    cosine_similarity,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    normalize,
    pairwise_distance,
    pdist,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from bwcompiler.nn.layers import bilinear, embedding, linear, one_hot
from bwcompiler.nn.likelihoods import gaussian_nll_loss, kl_div, multilabel_soft_margin_loss, poisson_nll_loss, soft_margin_loss
from bwcompiler.nn.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)
from bwcompiler.nn.noise import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
    gumbel_softmax,
    rrelu,
)
from bwcompiler.nn.normalization import batch_norm, group_norm, instance_norm, layer_norm, local_response_norm, rms_norm
from bwcompiler.nn.piecewise import celu, hardshrink, hardsigmoid, hardswish, hardtanh, prelu, relu6, selu, softshrink, threshold
from bwcompiler.nn.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from bwcompiler.nn.rearrangement import channel_shuffle, fold, pixel_shuffle, pixel_unshuffle, unfold
from bwcompiler.nn.resampling import affine_grid, grid_sample, interpolate, pad, upsample, upsample_bilinear, upsample_nearest
from bwcompiler.nn.sequences import ctc_loss, embedding_bag

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "affine_grid", "alpha_dropout", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm",
    "bilinear", "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "channel_shuffle", "conv1d", "conv2d",
    "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss", "cosine_similarity",
    "cross_entropy", "ctc_loss", "dropout", "dropout1d", "dropout2d", "dropout3d", "elu", "embedding", "embedding_bag",
    "feature_alpha_dropout", "fold", "gaussian_nll_loss", "gelu", "glu", "grid_sample", "group_norm", "gumbel_softmax",
    "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hinge_embedding_loss", "huber_loss", "instance_norm",
    "interpolate", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear", "local_response_norm", "log_softmax",
    "logsigmoid", "logsumexp", "lp_pool1d", "lp_pool2d", "lp_pool3d", "margin_ranking_loss", "max_pool1d", "max_pool2d",
    "max_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d", "mish", "mse_loss", "multi_head_attention_forward",
    "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss", "normalize", "one_hot", "pad",
    "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu", "relu6",
    "rms_norm", "rrelu", "scaled_dot_product_attention", "selu", "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss",
    "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "triplet_margin_loss",
    "triplet_margin_with_distance_loss", "unfold", "upsample", "upsample_bilinear", "upsample_nearest",
]


def __getattr__(name: str) -> Any:
    """The AttributeError of a name that is not there, for users of `torch.nn`."""
    function = f"bw.nn.{name.lower()}; " if name.lower() in __all__ else ""
    hint = f"{function}there are functions, no modules: parameters are arguments, in a dict or a dataclass" if name[:1].isupper() else None
    return spellings.missing("bw.nn", name, lambda: __all__, hint)


def __dir__() -> list[str]:
    return sorted({*__all__, *[name for name in globals() if name.startswith("__")]})
