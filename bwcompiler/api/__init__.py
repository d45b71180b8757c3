"""The public functions, composed of the compiler's stages.  Each folder uses only those before it:

    programs     the objects that users call: the functions that `jit` and all transforms return, and `Program`
    transforms   grad, vjp, jvp, jacobian, vmap ..., custom derivative rules, check_grads
    sparse       sparse_jacobian, sparse_hessian
    inside       for use inside traced functions: loops and branches, checkpoints, callbacks to Python, our own libraries
"""
