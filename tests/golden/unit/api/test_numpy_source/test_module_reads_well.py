"""mlp and its derivative, written by bwcompiler: forward, backward, value_and_grad."""

import numpy as np


@np.errstate(all="ignore")
def forward(params, x):
    """The value, and what backward needs of the way there."""
    params_b = params['b']
    params_w = params['w']
    matmul = x @ params_w                          # test_numpy_source.py:83
    broadcast = np.broadcast_to(params_b, (4, 3))  # test_numpy_source.py:83
    add = matmul + broadcast                       # test_numpy_source.py:83
    tanh = np.tanh(add)                            # test_numpy_source.py:83
    multiply = tanh * tanh                         # test_numpy_source.py:84
    sum_ = np.sum(multiply)                        # test_numpy_source.py:84
    divide = sum_ / 12.0                           # test_numpy_source.py:84
    return divide, (params_w, x, tanh)


@np.errstate(all="ignore")
def backward(residuals, divide_ct):
    """One gradient per argument, for the cotangents of the outputs."""
    params_w, x, tanh = residuals
    divide_ct = np.float64(divide_ct)
    sum_ct = divide_ct / 12.0                      # vjp of divide, test_numpy_source.py:84
    multiply_ct = np.broadcast_to(sum_ct, (4, 3))  # vjp of sum_, test_numpy_source.py:84
    multiply = multiply_ct * tanh                  # vjp of multiply, test_numpy_source.py:84
    multiply_1 = multiply_ct * tanh                # vjp of multiply, test_numpy_source.py:84
    tanh_ct = multiply + multiply_1                # vjp of multiply, test_numpy_source.py:84
    multiply_2 = tanh * tanh                       # vjp of tanh, test_numpy_source.py:83
    subtract = 1.0 - multiply_2                    # vjp of tanh, test_numpy_source.py:83
    add_ct = tanh_ct * subtract                    # vjp of tanh, test_numpy_source.py:83
    params_b_ct = np.sum(add_ct, axis=0)           # vjp of broadcast, test_numpy_source.py:83
    transpose = params_w.T                         # vjp of matmul, test_numpy_source.py:83
    x_ct = add_ct @ transpose                      # vjp of matmul, test_numpy_source.py:83
    transpose_1 = x.T                              # vjp of matmul, test_numpy_source.py:83
    params_w_ct = transpose_1 @ add_ct             # vjp of matmul, test_numpy_source.py:83
    return ({'w': params_w_ct, 'b': params_b_ct}, x_ct)


@np.errstate(all="ignore")
def value_and_grad(params, x):
    """The value and one gradient per argument."""
    out, residuals = forward(params, x)
    return out, backward(residuals, 1.0)
