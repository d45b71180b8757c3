"""The public functions, composed of the compiler's stages.  Four rooms, each made of those before it:

    programs     what users hold and call: the functions that `jit` and all transforms return, and `Program`
    transforms   functions of functions: grad, vjp, jvp, jacobian, vmap ..., rules that users give, check_grads
    sparse       sparse_jacobian, sparse_hessian
    inside       what is called inside of functions: loops and branches, checkpoints, Python functions, our own libraries
"""
