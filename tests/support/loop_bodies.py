"""Bodies of loops for tests of the vectoriser."""

from bwcompiler.ir.loop import Loop
from bwcompiler.ir.texts.loop_parser import parse_kernel
from bwcompiler.lowering.kernels.analysis.loop_bodies import Body

BUFFERS = "%x: in f64[9,64], %f: in f32[64], %n: in i64[64], %m: in bool[64], %y: out f64[9,64], %z: inout f64[600]"


def body(text: str, extent: int = 64) -> Body:
    """Of the loop over j, inside of one over i."""
    lines = "\n".join(f"      {line}" for line in text.strip().split("\n"))
    kernel = parse_kernel(f"kernel k({BUFFERS})\n  for i in 0..9\n    for j in 0..{extent} vector\n{lines}\n")
    outer = kernel.body[0]
    assert isinstance(outer, Loop) and isinstance(outer.body[0], Loop)
    return Body(outer.body[0], lambda buffer: buffer)
