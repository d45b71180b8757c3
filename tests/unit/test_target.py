"""Targets: what they are made from, what is refused, and which one is current."""

from __future__ import annotations

import itertools
import os
import platform
import subprocess
import sys
import threading

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler import target as module
from bwcompiler.errors import TargetError
from bwcompiler.target import LEVELS, Target, compiling_for, current_target, default_target
from tests.support.targets import HOST, TARGETS, narrowest, with_fma

X86 = platform.machine().lower() in ("x86_64", "amd64")


def test_host():
    assert Target.parse("host") == HOST and HOST.missing() == ()
    assert HOST.vector_bits in module.WIDTHS
    assert Target.parse(f"host@{HOST.vector_bits}") == HOST
    assert Target.parse("host@128").vector_bits == 128 and Target.parse("host@128").features == HOST.features
    assert HOST.lanes(32) * 32 == HOST.vector_bits


def test_names_of_cpus_keep_the_instructions_of_this_machine():
    assert Target.parse("generic") == Target("generic", HOST.features, HOST.vector_bits)


@pytest.mark.parametrize("text", ["", "hots", "x86-64-v5", "@256", "znver99", "host@", "host@300", "host@1024", "host@x"])
def test_what_is_no_target(text):
    with pytest.raises(TargetError, match=r"is no target; write host, a level \(x86-64, |host has vectors of 128"):
        Target.parse(text)


if X86:
    def test_levels():
        levels = [Target.level(name) for name in LEVELS]
        assert [level.vector_bits for level in levels] == [128, 128, 256, 512]
        assert [level.has_fma for level in levels] == [False, False, True, True]
        for lower, higher in itertools.pairwise(levels):
            assert set(lower.features.split(",")) < set(higher.features.split(","))
        assert str(levels[2]) == "x86-64-v3@256" and Target.parse(str(levels[2])) == levels[2]
        assert levels[0].function_attributes == "nounwind" and '"prefer-vector-width"="512"' in levels[3].function_attributes
        with pytest.raises(TargetError, match="x86-64-v3 has vectors of 128, 256 bits, not of 512"):
            Target.parse("x86-64-v3@512")

    def test_missing_instructions(monkeypatch):
        monkeypatch.setattr(Target, "host", classmethod(lambda cls: Target.level("x86-64-v2")))
        assert Target.level("x86-64-v2").missing() == ()
        assert "avx2" in Target.level("x86-64-v3").missing()
        monkeypatch.setenv("BW_TARGET", "x86-64-v3")
        with pytest.raises(TargetError, match=r"BW_TARGET=x86-64-v3: this machine \(x86-64-v2\) lacks avx, avx2"):
            default_target.__wrapped__()

    def test_two_targets_at_least_are_tested():
        assert len(TARGETS) >= 2 and not narrowest().has_fma
        assert HOST in with_fma().values() or not HOST.has_fma
else:
    def test_levels_are_refused_elsewhere():
        with pytest.raises(TargetError, match="is a level of x86-64 and this machine is"):
            Target.level("x86-64-v3")


def test_current_target():
    assert current_target() == default_target()
    other = Target.parse("host@128")
    seen = []
    with compiling_for(other):
        assert current_target() == other
        thread = threading.Thread(target=lambda: seen.append(current_target()))
        thread.start()
        thread.join()
    assert seen == [default_target()] and current_target() == default_target()


def test_programs_are_compiled_for_the_current_target():
    texts = []
    for target in (Target.parse("host@128"), HOST):
        with compiling_for(target):
            program = bw.compile(lambda x: np.sum(np.exp(x) * 3.0), np.ones(100))
            texts.append(program.as_text("llvm"))
        assert program.lowered().target == target
    assert (texts[0] == texts[1]) == (HOST.vector_bits == 128)


def run(code: str, setting: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, "BW_TARGET": setting}, capture_output=True, text=True, check=False)


def test_environment():
    code = "import numpy as np, bwcompiler as bw; p = bw.compile(np.exp, np.ones(9)); print(p.lowered().target, p(np.zeros(2 + 7))[0])"
    assert run(code, "host@128").stdout.split() == [f"{HOST.cpu}@128", "1.0"]
    failed = run(code, "x86-64-v9")
    assert failed.returncode == 1 and "BW_TARGET: 'x86-64-v9' is no target; write host" in failed.stderr
