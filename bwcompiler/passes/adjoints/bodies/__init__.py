"""The body of a loop or branch, cut into a part that runs forwards and an adjoint part.  Begin with `cut_body.py`.

    undo_log             arrays that the body updates are restored on the way back, so that what is read from them is not kept
    final_parts          nor is what the arrays still hold after the loop
    narrow_residuals     of other arrays, only the parts that the adjoint reads are kept
    keep_cotangents, order_additions     rewrites of the adjoint part
"""
