"""layers and its derivative, written by bwcompiler: forward, backward, value_and_grad."""

import numpy as np


@np.errstate(all="ignore")
def forward(params, x):
    """The value, and what backward needs of the way there."""
    params_0_0 = params[0][0]
    params_0_1 = params[0][1]
    params_1_0 = params[1][0]
    params_1_1 = params[1][1]
    matmul = x @ params_0_0               # layers.py:7
    before = matmul + params_0_1          # layers.py:7
    hidden = np.maximum(before, 0.0)      # layers.py:8
    matmul_1 = hidden @ params_1_0        # layers.py:7
    before_1 = matmul_1 + params_1_1      # layers.py:7
    hidden_1 = np.maximum(before_1, 0.0)  # layers.py:8
    multiply = hidden_1 * hidden_1        # layers.py:9
    sum_ = np.sum(multiply)               # layers.py:9
    loss = sum_ / 12.0                    # layers.py:9
    return loss, (params_0_0, params_1_0, x, before, before_1)


@np.errstate(all="ignore")
def backward(residuals, loss_ct):
    """One gradient per argument, for the cotangents of the outputs."""
    params_0_0, params_1_0, x, before, before_1 = residuals
    loss_ct = np.float64(loss_ct)
    sum_ct = loss_ct / 12.0                                     # vjp of loss, layers.py:9
    hidden_1 = np.maximum(before_1, 0.0)                        # layers.py:8
    multiply = sum_ct * hidden_1                                # vjp of multiply, layers.py:9
    hidden_ct = multiply * 2.0                                  # vjp of multiply, layers.py:9
    multiply_1 = hidden_ct * 0.5                                # vjp of hidden_1, layers.py:8
    less_equal = before_1 <= 0.0                                # vjp of hidden_1, layers.py:8
    select = np.where(less_equal, multiply_1, hidden_ct)        # vjp of hidden_1, layers.py:8
    greater_equal = before_1 >= 0.0                             # vjp of hidden_1, layers.py:8
    before_ct = np.where(greater_equal, select, 0.0)            # vjp of hidden_1, layers.py:8
    params_1_1_ct = np.sum(before_ct, axis=0)                   # vjp of params_1_1, layers.py:7
    transpose = params_1_0.T                                    # vjp of matmul_1, layers.py:7
    hidden_ct_1 = before_ct @ transpose                         # vjp of matmul_1, layers.py:7
    hidden = np.maximum(before, 0.0)                            # layers.py:8
    transpose_1 = hidden.T                                      # vjp of matmul_1, layers.py:7
    params_1_0_ct = transpose_1 @ before_ct                     # vjp of matmul_1, layers.py:7
    multiply_2 = hidden_ct_1 * 0.5                              # vjp of hidden, layers.py:8
    less_equal_1 = before <= 0.0                                # vjp of hidden, layers.py:8
    select_1 = np.where(less_equal_1, multiply_2, hidden_ct_1)  # vjp of hidden, layers.py:8
    greater_equal_1 = before >= 0.0                             # vjp of hidden, layers.py:8
    before_ct_1 = np.where(greater_equal_1, select_1, 0.0)      # vjp of hidden, layers.py:8
    params_0_1_ct = np.sum(before_ct_1, axis=0)                 # vjp of params_0_1, layers.py:7
    transpose_2 = params_0_0.T                                  # vjp of matmul, layers.py:7
    x_ct = before_ct_1 @ transpose_2                            # vjp of matmul, layers.py:7
    transpose_3 = x.T                                           # vjp of matmul, layers.py:7
    params_0_0_ct = transpose_3 @ before_ct_1                   # vjp of matmul, layers.py:7
    return ([(params_0_0_ct, params_0_1_ct), (params_1_0_ct, params_1_1_ct)], x_ct)


@np.errstate(all="ignore")
def value_and_grad(params, x):
    """The value and one gradient per argument."""
    out, residuals = forward(params, x)
    return out, backward(residuals, 1.0)
