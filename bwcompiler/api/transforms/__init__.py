"""The transforms: functions of traced functions, built on `transformed.py`.  Begin with `reverse.py`.

    reverse.py     grad, value_and_grad, vjp; custom_vjp, custom_jvp, stop_gradient
    forward.py     jvp;  linear.py: linearize
    jacobians.py   jacrev, jacfwd, jacobian, hessian, hvp
    vmap.py        vmap
    implicit.py    custom_root, custom_linear_solve
    check_grads.py derivatives against finite differences
"""
