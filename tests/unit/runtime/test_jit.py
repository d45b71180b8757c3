"""Text to object code to addresses, and the dumps."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading

import pytest

from bwcompiler.errors import InternalError
from bwcompiler.ir.types import F32, F64
from bwcompiler.lowering.products.parts import ROWS, part_text
from bwcompiler.runtime import jit
from bwcompiler.target import Target
from tests.support.targets import HOST, TARGETS

TWICE = "define i64 @twice(i64 %x) {\n  %r = shl i64 %x, 1\n  ret i64 %r\n}\n"

# y = x * x, in vectors of 512 bits, which code generation cuts into those that the target is to have
SQUARES = f"""
define void @squares(ptr noalias %x, ptr noalias %y) #0 {{
  %v = load <16 x float>, ptr %x, align 4
  %square = fmul <16 x float> %v, %v
  store <16 x float> %square, ptr %y, align 4
  ret void
}}
attributes #0 = {{ {HOST.function_attributes} }}
"""
LOOP = """
define void @loop(ptr noalias %x, ptr noalias %y) {
start:
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %loop ]
  %from = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %from
  %square = fmul float %v, %v
  %to = getelementptr float, ptr %y, i64 %i
  store float %square, ptr %to
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 4096
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


def call(code: jit.LoadedCode, name: str, argument: int) -> int:
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.addresses[name])
    return int(function(argument))


def test_compile_load_call() -> None:
    code = jit.load(jit.optimise(TWICE, HOST), {}, ["twice"])
    assert call(code, "twice", 21) == 42


def test_two_modules_at_once_are_what_they_are_alone() -> None:
    """Each lane has a context and target machines of its own; neither waits for the other."""
    texts = [part_text(dtype, HOST, ROWS) for dtype in (F32, F64)]
    alone = [jit.optimise(text, HOST, jit.FINISHED) for text in texts]
    begun, made = [threading.Event() for _ in texts], {}

    def compile_(number: int) -> None:
        begun[number].set()
        begun[1 - number].wait(60)
        made[number] = jit.optimise(texts[number], HOST, jit.FINISHED)

    threads = [threading.Thread(target=compile_, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [made[number] for number in range(2)] == alone


def test_one_object_can_be_loaded_again_and_again() -> None:
    image = jit.optimise(TWICE, HOST)
    loaded = [jit.load(image, {}, ["twice"]) for _ in range(20)]
    assert len({code.addresses["twice"] for code in loaded}) == 20
    assert [call(code, "twice", k) for k, code in enumerate(loaded)] == list(range(0, 40, 2))


def test_symbols_are_bound_to_functions_and_data() -> None:
    cell = ctypes.c_int64(100)
    callback = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: x * x)
    text = """
@my.cell = external global i64
declare i64 @my.function(i64)
define i64 @run(i64 %x) {
  %a = load i64, ptr @my.cell
  %b = call i64 @my.function(i64 %x)
  %r = add i64 %a, %b
  ret i64 %r
}"""
    address = ctypes.cast(callback, ctypes.c_void_p).value
    assert address is not None
    symbols = {"my.cell": ctypes.addressof(cell), "my.function": address}
    code = jit.load(jit.optimise(text, HOST), symbols, ["run"])
    assert call(code, "run", 5) == 125
    cell.value = -25
    assert call(code, "run", 5) == 0


def test_libc_and_libm_are_found() -> None:
    text = """
declare double @llvm.sin.f64(double)
define i64 @run(i64 %x) {
  %f = sitofp i64 %x to double
  %s = call double @llvm.sin.f64(double %f)
  %t = fmul double %s, 1000.0
  %r = fptosi double %t to i64
  ret i64 %r
}"""
    assert call(jit.load(jit.optimise(text, HOST), {}, ["run"]), "run", 1) == 841


def test_missing_symbol_is_an_error() -> None:
    text = "declare i64 @bw_no_such(i64)\ndefine i64 @run(i64 %x) {\n  %r = call i64 @bw_no_such(i64 %x)\n  ret i64 %r\n}"
    with pytest.raises(InternalError, match="cannot link native code"):
        jit.load(jit.optimise(text, HOST), {}, ["run"])


UNFINISHED = "define i64 @f() {"
BAD_PHI = "define i64 @f(i64 %x) {\na:\n  br label %b\nb:\n  %p = phi i64 [ %x, %c ]\n  ret i64 %p\nc:\n  ret i64 0\n}"


@pytest.mark.parametrize("text", [UNFINISHED, BAD_PHI], ids=["not parsed", "not verified"])
def test_invalid_text_is_an_error(text: str) -> None:
    with pytest.raises(InternalError, match="invalid LLVM text"):
        jit.optimise(text, HOST)


@pytest.mark.parametrize("target", TARGETS.values(), ids=str)
def test_vectors_have_the_width_of_the_target(target: Target) -> None:
    text = SQUARES.replace(HOST.function_attributes, target.function_attributes)
    register = {512: "zmm", 256: "ymm"}.get(target.vector_bits)
    wider = [name for bits, name in ((512, "zmm"), (256, "ymm")) if bits > target.vector_bits]
    code = jit.assembly(text, target)
    assert register is None or register in code
    assert not any(name in code for name in wider)


def test_llvm_makes_no_vectors_and_unrolls_nothing() -> None:
    text = jit.optimised_ir(LOOP, HOST)
    assert "x float>" not in text and text.count("load float") == 1


def test_every_target_has_code_of_its_own() -> None:
    images = {jit.optimise(SQUARES.replace(HOST.function_attributes, target.function_attributes), target) for target in TARGETS.values()}
    assert len(images) >= min(len(TARGETS), 2)


def test_import_initialises_nothing() -> None:
    script = "from bwcompiler.runtime import jit; print(jit._initialise.cache_info().misses)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.startswith("0")


def test_long_blocks_are_compiled_at_once() -> None:
    """In time that grows as they do, and to the same bits: the level of code generation changes no arithmetic."""
    def chain(length: int) -> str:
        steps = "".join(f"  %s{k} = fmul double %r{k}, 0x3FEFAE147AE147AE\n  %r{k + 1} = fadd double %s{k}, %x\n" for k in range(length))
        return f"define double @chain(double %x, double %r0) {{\nstart:\n{steps}  ret double %r{length}\n}}\n"

    tuning = jit.Tuning(longest=100)
    assert jit._level(chain(40), tuning) == tuning.level and jit._level(chain(60), tuning) == 0
    assert jit._level("\n".join(chain(40).replace("@chain", f"@chain{k}") for k in range(5)), tuning) == tuning.level       # many blocks
    largest = "  %a = call double @llvm.maximum.f64(double %x, double %r0)\n"                         # many instructions
    assert [jit._level(chain(10).replace("start:\n", "start:\n" + count * largest), tuning) for count in (10, 20)] == [tuning.level, 0]
    images = [jit.optimise(chain(60), HOST, one) for one in (tuning, jit.TUNING)]
    assert images[0] != images[1]
    numbering = [one for one in jit.TUNING.passes if one not in jit.TUNING.only_short]      # grows faster, too
    assert images[0] == jit.optimise(chain(60), HOST, jit.Tuning(tuple(numbering), level=0))
    signature = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)
    loaded = [jit.load(image, {}, ["chain"]) for image in images]
    found = [signature(code.addresses["chain"])(0.1, 0.7) for code in loaded]
    assert found[0] == found[1]
