"""The ops of the graph: one file per family, one complete declaration per op.  Importing this package registers them all.

    elements    elementwise, complex_parts; special/ (special functions); reduction, scan; ordering/ (sorting, order statistics)
    moves       broadcasting (and the sum, its transpose), layout, sliding, creation; indexing/ (gather, scatter)
    matrices    linalg/ (products, solves, decompositions, determinants, eigenvalues); fourier
    calls       calls/ (loops and branches, the user's own rules, Python functions)

Begin with `elementwise.py` and `layout.py`; `rules.py` and `numpy_text.py` have helpers for declarations.  Other stages write
`ops.broadcast(x, shape=..., axes=...)`; within this package, a family imports the ops of another from its module.
"""

from bwcompiler.ir.op import item
from bwcompiler.ops.broadcasting import (
    broadcast,
)
from bwcompiler.ops.broadcasting import (
    reduce_sum as sum,
)
from bwcompiler.ops.calls.callback import (
    callback,
)
from bwcompiler.ops.calls.custom import (
    custom_call,
    custom_link,
)
from bwcompiler.ops.calls.region import (
    barrier,
    checkpoint,
    cond,
    index_value,
    loop,
    region_link,
    while_loop,
)
from bwcompiler.ops.complex_parts import (
    conjugate,
    imag,
    make_complex,
    modulus,
    real,
    reciprocal,
)
from bwcompiler.ops.creation import (
    full,
    iota,
    unset,
)
from bwcompiler.ops.elementwise import (
    absolute,
    add,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    cast,
    cbrt,
    ceil,
    copysign,
    cos,
    cosh,
    divide,
    equal,
    exp,
    exp2,
    expm1,
    floor,
    floor_divide,
    fmod,
    greater,
    greater_equal,
    hypot,
    invert,
    isfinite,
    isinf,
    isnan,
    left_shift,
    less,
    less_equal,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    power,
    remainder,
    right_shift,
    rint,
    select,
    sign,
    signbit,
    sin,
    sinh,
    sqrt,
    stop_gradient,
    subtract,
    tan,
    tanh,
    trunc,
)
from bwcompiler.ops.fourier import (
    fft,
    irfft,
    rfft,
)
from bwcompiler.ops.indexing.elements import (
    gather,
    scatter_add,
    scatter_update,
)
from bwcompiler.ops.indexing.indices import (
    check_range,
    index_from_start,
    normalize_index,
    wrap_index,
)
from bwcompiler.ops.layout import (
    concatenate,
    flip,
    pad,
    reshape,
    slice_add,
    slice_axis,
    slice_update,
    transpose,
)
from bwcompiler.ops.layout import (
    slice_ as slice,
)
from bwcompiler.ops.linalg.cholesky import (
    cholesky,
    cholesky_adjoint,
    cholesky_or_nan,
    cholesky_tangent,
)
from bwcompiler.ops.linalg.contraction import (
    matmul,
    matmul_add,
)
from bwcompiler.ops.linalg.determinants import (
    cofactor_change,
    cofactors,
    det,
    slogdet,
)
from bwcompiler.ops.linalg.eigen import (
    eig,
    eigh,
    eigvals,
    eigvalsh,
)
from bwcompiler.ops.linalg.factorization import (
    householder,
    orthonormal,
    pinv,
    qr,
    svd,
    svdvals,
)
from bwcompiler.ops.linalg.solves import (
    inv,
    lu,
    lu_solve,
    solve,
    triangular_solve,
)
from bwcompiler.ops.ordering.order_statistics import (
    argpartition,
    order_positions,
    order_statistics,
)
from bwcompiler.ops.ordering.sorting import (
    argsort,
    bitwise_count,
    exponent,
    gcd,
    integer_power,
    lcm,
    nextafter,
    sort,
    spacing,
)
from bwcompiler.ops.reduction import (
    argmax,
    argmin,
)
from bwcompiler.ops.reduction import (
    reduce_all as all,
)
from bwcompiler.ops.reduction import (
    reduce_any as any,
)
from bwcompiler.ops.reduction import (
    reduce_max as max,
)
from bwcompiler.ops.reduction import (
    reduce_min as min,
)
from bwcompiler.ops.reduction import (
    reduce_prod as prod,
)
from bwcompiler.ops.scan import (
    cumprod,
    cumsum,
)
from bwcompiler.ops.sliding import (
    windows,
    windows_add,
)
from bwcompiler.ops.special import (  # noqa: F401  (which say the derivatives of special_function)
    bessel_derivatives,
    complex_derivatives,
    derivatives,
    elliptic_derivatives,
    hypergeometric_derivatives,
)
from bwcompiler.ops.special.functions import (
    digamma,
    erf,
    erfc,
    erfinv,
    lgamma,
    polygamma,
    sigmoid,
    trigamma,
)
from bwcompiler.ops.special.loops import special_function

LOOPS = (loop, while_loop)                              # whose first operands are replaced by the body in every iteration
UPDATES = (slice_update, slice_add)                     # the first operand, except a section that is set or added to
SCATTERS = (scatter_update, scatter_add)                # the first operand, except elements at data-dependent indices
WRITES = (*UPDATES, *SCATTERS)                          # all ops that are computed in place of the first operand if possible
SEARCHES = (argmax, argmin)
PRODUCTS = (matmul, matmul_add)

__all__ = [
    "LOOPS",
    "PRODUCTS",
    "SEARCHES",
    "UPDATES",
    "WRITES",
    "absolute",
    "add",
    "all",
    "any",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argpartition",
    "argsort",
    "barrier",
    "bitwise_and",
    "bitwise_count",
    "bitwise_or",
    "bitwise_xor",
    "broadcast",
    "callback",
    "cast",
    "cbrt",
    "ceil",
    "check_range",
    "checkpoint",
    "cholesky",
    "cholesky_adjoint",
    "cholesky_or_nan",
    "cholesky_tangent",
    "cofactor_change",
    "cofactors",
    "concatenate",
    "cond",
    "conjugate",
    "copysign",
    "cos",
    "cosh",
    "cumprod",
    "cumsum",
    "custom_call",
    "custom_link",
    "det",
    "digamma",
    "divide",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "equal",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "exponent",
    "fft",
    "flip",
    "floor",
    "floor_divide",
    "fmod",
    "full",
    "gather",
    "gcd",
    "greater",
    "greater_equal",
    "householder",
    "hypot",
    "imag",
    "index_from_start",
    "index_value",
    "integer_power",
    "inv",
    "invert",
    "iota",
    "irfft",
    "isfinite",
    "isinf",
    "isnan",
    "item",
    "lcm",
    "left_shift",
    "less",
    "less_equal",
    "lgamma",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "loop",
    "lu",
    "lu_solve",
    "make_complex",
    "matmul",
    "matmul_add",
    "max",
    "maximum",
    "min",
    "minimum",
    "modulus",
    "multiply",
    "negative",
    "nextafter",
    "normalize_index",
    "not_equal",
    "order_positions",
    "order_statistics",
    "orthonormal",
    "pad",
    "pinv",
    "polygamma",
    "power",
    "prod",
    "qr",
    "real",
    "reciprocal",
    "region_link",
    "remainder",
    "reshape",
    "rfft",
    "right_shift",
    "rint",
    "scatter_add",
    "scatter_update",
    "select",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "slice",
    "slice_add",
    "slice_axis",
    "slice_update",
    "slogdet",
    "solve",
    "sort",
    "spacing",
    "special_function",
    "sqrt",
    "stop_gradient",
    "subtract",
    "sum",
    "svd",
    "svdvals",
    "tan",
    "tanh",
    "transpose",
    "triangular_solve",
    "trigamma",
    "trunc",
    "unset",
    "while_loop",
    "windows",
    "windows_add",
    "wrap_index",
]
