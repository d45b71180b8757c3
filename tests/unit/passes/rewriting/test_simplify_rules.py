"""Every rule of simplification: a graph that it changes, and one like it that it must leave as it is.

Graphs are text; the body before and after is compared with names left out of account only where the rule makes new values.
"""

from __future__ import annotations

import numpy as np
import pytest

import bwcompiler as bw
from bwcompiler.ir.semantics.graph_interpreter import interpret
from bwcompiler.ir.semantics.graph_verifier import verify
from bwcompiler.ir.texts.graph_parser import parse_graph
from bwcompiler.ir.texts.graph_printer import graph_to_text
from bwcompiler.passes.rewriting.legalize import legalize
from bwcompiler.passes.rewriting.simplify import simplify
from bwcompiler.passes.rewriting.simplify_rules import RULES

INPUTS = "%x: f64[2,3], %y: f64[2,3], %c: bool[2,3], %n: i64[2,3], %v: f64[3], %s: f64[], %k: i64[3]"

# equation -> (a body on which it fires, what that becomes, a body on which it must not fire)
CASES = {
    "x[i] of an index of a loop is a slice": (
        "%i: i64[] = index_value {extent=1}\n%r: f64[3] = gather %x, %i {axes=[0]}",
        "%part: f64[1,3] = slice %x {starts=[1,0], sizes=[1,3], steps=[1,1]}\n%r: f64[3] = reshape %part {shape=[3]}",
        "%i: i64[] = index_value {extent=2}\n%r: f64[3] = gather %x, %i {axes=[0]}"),
    "x[i, 2] = a of an index of a loop": (
        "%i: i64[] = index_value {extent=1}\n%j: i64[] = full {value=2, shape=[], dtype=i64}\n"
        "%r: f64[2,3] = scatter_update %x, %s, %i, %j {axes=[0,1]}",
        "%a: f64[1,1] = reshape %s {shape=[1,1]}\n%r: f64[2,3] = slice_update %x, %a {starts=[1,2], steps=[1,1]}",
        "%i: i64[] = index_value {extent=2}\n%j: i64[] = full {value=2, shape=[], dtype=i64}\n"
        "%r: f64[2,3] = scatter_update %x, %s, %i, %j {axes=[0,1]}"),
    "x[i] += v of an index of a loop": (
        "%i: i64[] = index_value {extent=1}\n%r: f64[2,3] = scatter_add %x, %v, %i {axes=[0]}",
        "%a: f64[1,3] = reshape %v {shape=[1,3]}\n%r: f64[2,3] = slice_add %x, %a {starts=[1,0], steps=[1,1]}",
        "%i: i64[] = index_value {extent=-1}\n%r: f64[2,3] = scatter_add %x, %v, %i {axes=[0]}"),
    "x[k] = x[k]": (
        "%a: f64[3,2] = gather %x, %k {axes=[1]}\n%r: f64[2,3] = scatter_update %x, %a, %k {axes=[1]}", "%x",
        "%a: f64[3,2] = gather %y, %k {axes=[1]}\n%r: f64[2,3] = scatter_update %x, %a, %k {axes=[1]}"),
    "x[k] = a, x[k] += b at different places": (
        "%i: i64[3] = iota {shape=[3], axis=0, dtype=i64}\n%t: f64[3,2] = transpose %y {axes=[1,0]}\n"
        "%q: f64[2,3] = scatter_update %x, %t, %i {axes=[1]}\n%r: f64[2,3] = scatter_add %q, %t, %i {axes=[1]}",
        "%i: i64[3] = iota {shape=[3], axis=0, dtype=i64}\n%t: f64[3,2] = transpose %y {axes=[1,0]}\n"
        "%a: f64[3,2] = multiply %t, 2.0\n%r: f64[2,3] = scatter_update %x, %a, %i {axes=[1]}",
        "%t: f64[3,2] = transpose %y {axes=[1,0]}\n"
        "%q: f64[2,3] = scatter_update %x, %t, %k {axes=[1]}\n%r: f64[2,3] = scatter_add %q, %t, %k {axes=[1]}"),
    "x[:, 1] = x[:, 1] with a at [0]": (
        "%p: f64[2,1] = slice %x {starts=[0,1], sizes=[2,1], steps=[1,1]}\n%q: f64[2] = reshape %p {shape=[2]}\n"
        "%t: f64[1] = reshape %s {shape=[1]}\n%u: f64[2] = slice_update %q, %t {starts=[1], steps=[1]}\n"
        "%w: f64[2,1] = reshape %u {shape=[2,1]}\n%r: f64[2,3] = slice_update %x, %w {starts=[0,1], steps=[1,1]}",
        "%a: f64[1,1] = reshape %s {shape=[1,1]}\n%r: f64[2,3] = slice_update %x, %a {starts=[1,1], steps=[1,1]}",
        "%p: f64[2,1] = slice %x {starts=[0,2], sizes=[2,1], steps=[1,1]}\n%q: f64[2] = reshape %p {shape=[2]}\n"
        "%t: f64[1] = reshape %s {shape=[1]}\n%u: f64[2] = slice_update %q, %t {starts=[1], steps=[1]}\n"
        "%w: f64[2,1] = reshape %u {shape=[2,1]}\n%r: f64[2,3] = slice_update %x, %w {starts=[0,1], steps=[1,1]}"),
    "x[:, 1:] = x[:, 1:] with a added at [0:1]": (
        "%p: f64[2,2] = slice %x {starts=[0,1], sizes=[2,2], steps=[1,1]}\n%t: f64[1,2] = slice %y {starts=[1,0], sizes=[1,2], steps=[1,1]}\n"
        "%u: f64[2,2] = slice_add %p, %t {starts=[0,0], steps=[1,1]}\n%r: f64[2,3] = slice_update %x, %u {starts=[0,1], steps=[1,1]}",
        "%t: f64[1,2] = slice %y {starts=[1,0], sizes=[1,2], steps=[1,1]}\n%r: f64[2,3] = slice_add %x, %t {starts=[0,1], steps=[1,1]}",
        "%p: f64[2,2] = slice %y {starts=[0,1], sizes=[2,2], steps=[1,1]}\n%t: f64[1,2] = slice %y {starts=[1,0], sizes=[1,2], steps=[1,1]}\n"
        "%u: f64[2,2] = slice_add %p, %t {starts=[0,0], steps=[1,1]}\n%r: f64[2,3] = slice_update %x, %u {starts=[0,1], steps=[1,1]}"),
    "x[1][i] of a row": (
        "%part: f64[1,3] = slice %x {starts=[1,0], sizes=[1,3], steps=[1,1]}\n%t: f64[3] = reshape %part {shape=[3]}\n"
        "%i: i64[] = index_value {extent=2}\n%r: f64[] = gather %t, %i {axes=[0]}",
        "%part: f64[1,1] = slice %x {starts=[1,2], sizes=[1,1], steps=[1,1]}\n%r: f64[] = reshape %part {shape=[]}",
        "%part: f64[1,3] = slice %x {starts=[1,0], sizes=[1,3], steps=[1,1]}\n%t: f64[3] = reshape %part {shape=[3]}\n"
        "%i: i64[] = index_value {extent=3}\n%r: f64[] = gather %t, %i {axes=[0]}"),
    "an index of a loop that is in range": (
        "%i: i64[] = index_value {extent=1}\n%r: i64[] = normalize_index %i {extent=2}", "%r: i64[] = index_value {extent=1}",
        "%i: i64[] = index_value {extent=-1}\n%r: i64[] = normalize_index %i {extent=2}"),
    "x * 1 == x": ("%r: f64[2,3] = multiply %x, 1.0", "%x", "%r: f64[2,3] = multiply %x, 2.0"),
    "1 * x == x": ("%r: f64[2,3] = multiply 1.0, %x", "%x", "%r: f64[2,3] = multiply %x, 0.0"),
    "x * -1 == -x": ("%r: f64[2,3] = multiply %x, -1.0", "%r: f64[2,3] = negative %x", "%r: f64[2,3] = multiply %x, -2.0"),
    "-x * c == x * -c": ("%m: f64[2,3] = negative %x\n%r: f64[2,3] = multiply %m, 3.0", "%r: f64[2,3] = multiply %x, -3.0",
                         "%m: f64[2,3] = negative %x\n%r: f64[2,3] = multiply %m, %y"),
    "x * 2**k * c == x * (2**k c)": ("%m: f64[2,3] = multiply %x, -4.0\n%r: f64[2,3] = multiply %m, 3.0", "%r: f64[2,3] = multiply %x, -12.0",
                                     "%m: f64[2,3] = multiply %x, 3.0\n%r: f64[2,3] = multiply %m, 4.0"),
    "x + -0.0 == x": ("%r: f64[2,3] = add %x, -0.0", "%x", "%r: f64[2,3] = add %x, 0.0"),
    "n + 0 == n": ("%r: i64[2,3] = add %n, 0", "%n", "%r: i64[2,3] = add %n, 1"),
    "x + x == 2 x": ("%r: f64[2,3] = add %x, %x", "%r: f64[2,3] = multiply %x, 2.0", "%r: f64[2,3] = add %x, %y"),
    "x + -y == x - y": ("%m: f64[2,3] = negative %y\n%r: f64[2,3] = add %x, %m", "%r: f64[2,3] = subtract %x, %y",
                        "%m: f64[2,3] = absolute %y\n%r: f64[2,3] = add %x, %m"),
    "-x + y == y - x": ("%m: f64[2,3] = negative %x\n%r: f64[2,3] = add %m, %y", "%r: f64[2,3] = subtract %y, %x",
                        "%r: f64[2,3] = subtract %y, %x"),
    "x - 0 == x": ("%r: f64[2,3] = subtract %x, 0.0", "%x", "%r: f64[2,3] = subtract 0.0, %x"),
    "x - -0.0": ("%r: f64[2,3] = subtract %x, 0.0", "%x", "%r: f64[2,3] = subtract %x, -0.0"),
    "x - -y == x + y": ("%m: f64[2,3] = negative %y\n%r: f64[2,3] = subtract %x, %m", "%r: f64[2,3] = add %x, %y",
                        "%m: f64[2,3] = negative %x\n%r: f64[2,3] = subtract %m, %y"),
    "x / 1 == x": ("%r: f64[2,3] = divide %x, 1.0", "%x", "%r: f64[2,3] = divide %x, 3.0"),
    "-(-x) == x": ("%m: f64[2,3] = negative %x\n%r: f64[2,3] = negative %m", "%x", "%m: f64[2,3] = absolute %x\n%r: f64[2,3] = negative %m"),
    "~~c == c": ("%m: bool[2,3] = invert %c\n%r: bool[2,3] = invert %m", "%c", "%r: bool[2,3] = invert %c"),
    "select(c, x, x) == x": ("%r: f64[2,3] = select %c, %x, %x", "%x", "%r: f64[2,3] = select %c, %x, %y"),
    "select(~c, x, y) == select(c, y, x)": ("%m: bool[2,3] = invert %c\n%r: f64[2,3] = select %m, %x, %y",
                                            "%r: f64[2,3] = select %c, %y, %x", "%r: f64[2,3] = select %c, %x, %y"),
    "select(c, select(c, x, _), y) == select(c, x, y)": (
        "%m: f64[2,3] = select %c, %x, 5.0\n%r: f64[2,3] = select %c, %m, %y", "%r: f64[2,3] = select %c, %x, %y",
        "%d: bool[2,3] = less %x, %y\n%m: f64[2,3] = select %d, %x, 5.0\n%r: f64[2,3] = select %c, %m, %y"),
    "select(c & d, select(c, x, _), y) == select(c & d, x, y)": (
        "%d: bool[2,3] = less %x, %y\n%e: bool[2,3] = bitwise_and %c, %d\n%m: f64[2,3] = select %c, %x, 5.0\n"
        "%r: f64[2,3] = select %e, %m, %y",
        "%d: bool[2,3] = less %x, %y\n%e: bool[2,3] = bitwise_and %c, %d\n%r: f64[2,3] = select %e, %x, %y",
        "%d: bool[2,3] = less %x, %y\n%e: bool[2,3] = bitwise_or %c, %d\n%m: f64[2,3] = select %c, %x, 5.0\n"
        "%r: f64[2,3] = select %e, %m, %y"),
    "select(~c & d, -select(c, _, x), y) == select(~c & d, -x, y)": (
        "%d: bool[2,3] = less %x, %y\n%i: bool[2,3] = invert %c\n%e: bool[2,3] = bitwise_and %d, %i\n"
        "%m: f64[2,3] = select %c, 5.0, %x\n%n1: f64[2,3] = negative %m\n%r: f64[2,3] = select %e, %n1, %y",
        "%d: bool[2,3] = less %x, %y\n%i: bool[2,3] = invert %c\n%e: bool[2,3] = bitwise_and %d, %i\n"
        "%n1: f64[2,3] = negative %x\n%r: f64[2,3] = select %e, %n1, %y",
        "%d: bool[2,3] = less %x, %y\n%e: bool[2,3] = bitwise_and %c, %d\n%f: bool[2,3] = less %y, %x\n"
        "%m: f64[2,3] = select %f, 5.0, %x\n%n1: f64[2,3] = negative %m\n%r: f64[2,3] = select %e, %n1, %y"),
    "x & x == x": ("%r: bool[2,3] = bitwise_and %c, %c", "%c",
                   "%d: bool[2,3] = less %x, %y\n%r: bool[2,3] = bitwise_and %c, %d"),
    "select(c, x, select(c, _, y)) == select(c, x, y)": (
        "%m: f64[2,3] = select %c, 5.0, %y\n%r: f64[2,3] = select %c, %x, %m", "%r: f64[2,3] = select %c, %x, %y",
        "%d: bool[2,3] = less %x, %y\n%m: f64[2,3] = select %d, 5.0, %y\n%r: f64[2,3] = select %c, %x, %m"),
    "cast to the same dtype": ("%r: f64[2,3] = cast %x {dtype=f64}", "%x", "%r: f64[2,3] = cast %n {dtype=f64}"),
    "f32 -> f64 -> f32": ("%a: f32[2,3] = cast %n {dtype=f32}\n%b: f64[2,3] = cast %a {dtype=f64}\n%r: f32[2,3] = cast %b {dtype=f32}",
                          "%a: f32[2,3] = cast %n {dtype=f32}", "%a: f32[2,3] = cast %x {dtype=f32}\n%r: f64[2,3] = cast %a {dtype=f64}"),
    "broadcast that adds nothing": ("%r: f64[2,3] = broadcast %x {shape=[2,3], axes=[0,1]}", "%x",
                                    "%r: f64[2,3] = broadcast %v {shape=[2,3], axes=[1]}"),
    "broadcast(broadcast(x))": (
        "%m: f64[2,3] = broadcast %v {shape=[2,3], axes=[1]}\n%r: f64[4,2,3] = broadcast %m {shape=[4,2,3], axes=[1,2]}",
        "%r: f64[4,2,3] = broadcast %v {shape=[4,2,3], axes=[2]}", "%r: f64[4,2,3] = broadcast %x {shape=[4,2,3], axes=[1,2]}"),
    "transpose by the identity": ("%r: f64[2,3] = transpose %x {axes=[0,1]}", "%x", "%r: f64[3,2] = transpose %x {axes=[1,0]}"),
    "(x^p)^q == x^(p[q])": ("%m: f64[3,2] = transpose %x {axes=[1,0]}\n%r: f64[2,3] = transpose %m {axes=[1,0]}", "%x",
                            "%m: f64[3,2] = transpose %x {axes=[1,0]}\n%r: f64[2,3] = reshape %m {shape=[2,3]}"),
    "reshape to the same shape": ("%r: f64[2,3] = reshape %x {shape=[2,3]}", "%x", "%r: f64[3,2] = reshape %x {shape=[3,2]}"),
    "reshape(reshape(x))": ("%m: f64[6] = reshape %x {shape=[6]}\n%r: f64[3,2] = reshape %m {shape=[3,2]}",
                            "%r: f64[3,2] = reshape %x {shape=[3,2]}", "%r: f64[6] = reshape %x {shape=[6]}"),
    "f(reshape(x), 2) == reshape(f(x, 2))": (
        "%m: f64[3,1] = reshape %v {shape=[3,1]}\n%e: f64[3,1] = exp %m\n%r: f64[3] = reshape %e {shape=[3]}",
        "%e: f64[3] = exp %v", "%m: f64[3,2] = reshape %x {shape=[3,2]}\n%e: f64[3,2] = exp %m\n%r: f64[2,3] = reshape %e {shape=[2,3]}"),
    "f(reshape(x), y)": ("%m: f64[3,1] = reshape %v {shape=[3,1]}\n%e: f64[3,1] = multiply %m, %m\n%r: f64[3] = reshape %e {shape=[3]}",
                         "%e: f64[3] = multiply %v, %v",
                         "%m: f64[1,2,3] = reshape %x {shape=[1,2,3]}\n%b: f64[1,2,3] = broadcast %v {shape=[1,2,3], axes=[2]}\n"
                         "%r: f64[1,2,3] = multiply %m, %b"),
    "slice of the whole": ("%r: f64[2,3] = slice %x {starts=[0,0], sizes=[2,3], steps=[1,1]}", "%x",
                           "%r: f64[2,3] = slice %x {starts=[0,2], sizes=[2,3], steps=[1,-1]}"),
    "slice of an update elsewhere": (
        "%w: f64[2] = slice %v {starts=[0], sizes=[2], steps=[1]}\n%u: f64[3] = slice_update %v, %w {starts=[1], steps=[1]}\n"
        "%r: f64[1] = slice %u {starts=[0], sizes=[1], steps=[1]}", "%r: f64[1] = slice %v {starts=[0], sizes=[1], steps=[1]}",
        "%w: f64[2] = slice %v {starts=[0], sizes=[2], steps=[1]}\n%u: f64[3] = slice_update %v, %w {starts=[1], steps=[1]}\n"
        "%r: f64[2] = slice %u {starts=[0], sizes=[2], steps=[1]}"),
    "slice of exactly the update": (
        "%w: f64[2] = slice %v {starts=[0], sizes=[2], steps=[1]}\n%u: f64[3] = slice_update %v, %w {starts=[1], steps=[1]}\n"
        "%r: f64[2] = slice %u {starts=[1], sizes=[2], steps=[1]}", "%w: f64[2] = slice %v {starts=[0], sizes=[2], steps=[1]}",
        "%w: f64[2] = slice %v {starts=[0], sizes=[2], steps=[1]}\n%u: f64[3] = slice_update %v, %w {starts=[1], steps=[1]}\n"
        "%r: f64[1] = slice %u {starts=[1], sizes=[1], steps=[1]}"),
    "flip twice": ("%m: f64[2,3] = flip %x {axes=[0]}\n%r: f64[2,3] = flip %m {axes=[0]}", "%x",
                   "%m: f64[2,3] = flip %x {axes=[0]}\n%r: f64[2,3] = flip %m {axes=[1]}"),
    "0 + v into a slice": (
        "%z: f64[3] = full {value=0.0, shape=[3], dtype=f64}\n%w: f64[2] = slice %v {starts=[0], sizes=[2], steps=[1]}\n"
        "%r: f64[3] = slice_add %z, %w {starts=[1], steps=[1]}",
        "%z: f64[3] = full {value=0.0, shape=[3], dtype=f64}\n%w: f64[2] = slice %v {starts=[0], sizes=[2], steps=[1]}\n"
        "%r: f64[3] = slice_update %z, %w {starts=[1], steps=[1]}",
        "%w: f64[2] = slice %v {starts=[0], sizes=[2], steps=[1]}\n%r: f64[3] = slice_add %v, %w {starts=[1], steps=[1]}"),
    "x[:, 1] += a vector of zeros but at [0]": (
        "%z: f64[2] = full {value=0.0, shape=[2], dtype=f64}\n%t: f64[1] = reshape %s {shape=[1]}\n"
        "%u: f64[2] = slice_update %z, %t {starts=[0], steps=[1]}\n%w: f64[2,1] = reshape %u {shape=[2,1]}\n"
        "%r: f64[2,3] = slice_add %x, %w {starts=[0,1], steps=[1,1]}",
        "%a: f64[1,1] = reshape %s {shape=[1,1]}\n%r: f64[2,3] = slice_add %x, %a {starts=[0,1], steps=[1,1]}",
        "%z: f64[2] = full {value=1.0, shape=[2], dtype=f64}\n%t: f64[1] = reshape %s {shape=[1]}\n"
        "%u: f64[2] = slice_update %z, %t {starts=[0], steps=[1]}\n%w: f64[2,1] = reshape %u {shape=[2,1]}\n"
        "%r: f64[2,3] = slice_add %x, %w {starts=[0,1], steps=[1,1]}"),
    "x[2:] += v[:1]; x[:2] += v[1:]": (
        "%p: f64[1] = slice %v {starts=[0], sizes=[1], steps=[1]}\n%q: f64[2] = slice %v {starts=[1], sizes=[2], steps=[1]}\n"
        "%a: f64[3] = slice_add %v, %p {starts=[2], steps=[1]}\n%r: f64[3] = slice_add %a, %q {starts=[0], steps=[1]}",
        "%p: f64[1] = slice %v {starts=[0], sizes=[1], steps=[1]}\n%q: f64[2] = slice %v {starts=[1], sizes=[2], steps=[1]}\n"
        "%t: f64[3] = concatenate %q, %p {axis=0}\n%r: f64[3] = add %v, %t",
        "%p: f64[1] = slice %v {starts=[0], sizes=[1], steps=[1]}\n%q: f64[2] = slice %v {starts=[1], sizes=[2], steps=[1]}\n"
        "%a: f64[3] = slice_add %v, %p {starts=[2], steps=[1]}\n%r: f64[3] = slice_add %a, %q {starts=[1], steps=[1]}"),
    "x[1] = a; x[1] = b": (
        "%w: f64[1] = slice %v {starts=[0], sizes=[1], steps=[1]}\n%u: f64[1] = slice %v {starts=[2], sizes=[1], steps=[1]}\n"
        "%a: f64[3] = slice_add %v, %w {starts=[1], steps=[1]}\n%r: f64[3] = slice_update %a, %u {starts=[1], steps=[1]}",
        "%u: f64[1] = slice %v {starts=[2], sizes=[1], steps=[1]}\n%r: f64[3] = slice_update %v, %u {starts=[1], steps=[1]}",
        "%w: f64[1] = slice %v {starts=[0], sizes=[1], steps=[1]}\n%u: f64[1] = slice %v {starts=[1], sizes=[1], steps=[1]}\n"
        "%a: f64[3] = slice_add %v, %w {starts=[0], steps=[1]}\n%r: f64[3] = slice_update %a, %u {starts=[1], steps=[1]}"),
    "x[1] = a; x[1] += b is x[1] = a + b": (
        "%w: f64[1] = slice %v {starts=[0], sizes=[1], steps=[1]}\n%u: f64[1] = slice %v {starts=[2], sizes=[1], steps=[1]}\n"
        "%a: f64[3] = slice_update %v, %w {starts=[1], steps=[1]}\n%r: f64[3] = slice_add %a, %u {starts=[1], steps=[1]}",
        "%w: f64[1] = slice %v {starts=[0], sizes=[1], steps=[1]}\n%u: f64[1] = slice %v {starts=[2], sizes=[1], steps=[1]}\n"
        "%t: f64[1] = add %w, %u\n%r: f64[3] = slice_update %v, %t {starts=[1], steps=[1]}",
        "%w: f64[1] = slice %v {starts=[0], sizes=[1], steps=[1]}\n%u: f64[2] = slice %v {starts=[1], sizes=[2], steps=[1]}\n"
        "%a: f64[3] = slice_update %v, %w {starts=[1], steps=[1]}\n%r: f64[3] = slice_add %a, %u {starts=[1], steps=[1]}"),
    "x[1] = 0; x[1] += a is x[1] = a": (
        "%z: f64[1] = full {value=0.0, shape=[1], dtype=f64}\n%u: f64[1] = slice %v {starts=[2], sizes=[1], steps=[1]}\n"
        "%a: f64[3] = slice_update %v, %z {starts=[1], steps=[1]}\n%r: f64[3] = slice_add %a, %u {starts=[1], steps=[1]}",
        "%u: f64[1] = slice %v {starts=[2], sizes=[1], steps=[1]}\n%r: f64[3] = slice_update %v, %u {starts=[1], steps=[1]}",
        "%z: f64[1] = full {value=0.0, shape=[1], dtype=f64}\n%u: f64[1] = slice %v {starts=[2], sizes=[1], steps=[1]}\n"
        "%a: f64[3] = slice_update %v, %z {starts=[0], steps=[1]}\n%r: f64[3] = slice_add %a, %u {starts=[1], steps=[1]}"),
    "x[1] = 0; y[1] = 0; x + y": (
        "%z: f64[1,3] = full {value=0.0, shape=[1,3], dtype=f64}\n%a: f64[2,3] = slice_update %x, %z {starts=[1,0], steps=[1,1]}\n"
        "%b: f64[2,3] = slice_update %y, %z {starts=[1,0], steps=[1,1]}\n%r: f64[2,3] = add %a, %b",
        "%z: f64[1,3] = full {value=0.0, shape=[1,3], dtype=f64}\n%t: f64[2,3] = add %x, %y\n"
        "%r: f64[2,3] = slice_update %t, %z {starts=[1,0], steps=[1,1]}",
        "%z: f64[1,3] = full {value=0.0, shape=[1,3], dtype=f64}\n%a: f64[2,3] = slice_update %x, %z {starts=[1,0], steps=[1,1]}\n"
        "%b: f64[2,3] = slice_update %y, %z {starts=[0,0], steps=[1,1]}\n%r: f64[2,3] = add %a, %b"),
    "x[1] = x[1]": (
        "%u: f64[1] = slice %v {starts=[1], sizes=[1], steps=[1]}\n%r: f64[3] = slice_update %v, %u {starts=[1], steps=[1]}", "%v",
        "%u: f64[1] = slice %v {starts=[0], sizes=[1], steps=[1]}\n%r: f64[3] = slice_update %v, %u {starts=[1], steps=[1]}"),
    "update of the whole": ("%r: f64[2,3] = slice_update %x, %y {starts=[0,0], steps=[1,1]}", "%y",
                            "%r: f64[2,3] = slice_update %x, %y {starts=[1,0], steps=[-1,1]}"),
    "x[0] = 0; x[1] = 0 is x[0:2] = 0": (
        "%z: f64[1] = full {value=0.0, shape=[1], dtype=f64}\n%a: f64[3] = slice_update %v, %z {starts=[0], steps=[1]}\n"
        "%r: f64[3] = slice_update %a, %z {starts=[1], steps=[1]}",
        "%z: f64[2] = full {value=0.0, shape=[2], dtype=f64}\n%r: f64[3] = slice_update %v, %z {starts=[0], steps=[1]}",
        "%z: f64[1] = full {value=0.0, shape=[1], dtype=f64}\n%o: f64[1] = full {value=-0.0, shape=[1], dtype=f64}\n"
        "%a: f64[3] = slice_update %v, %z {starts=[0], steps=[1]}\n%r: f64[3] = slice_update %a, %o {starts=[1], steps=[1]}"),
    "sum over no axes": ("%r: f64[2,3] = sum %x {axes=[]}", "%r: f64[2,3] = add %x, 0.0", "%r: f64[3] = sum %x {axes=[0]}"),
    "sum over axes of one": ("%o: f64[1,3] = reshape %v {shape=[1,3]}\n%r: f64[3] = sum %o {axes=[0]}", "%r: f64[3] = add %v, 0.0",
                             "%o: f64[1,3] = reshape %v {shape=[1,3]}\n%r: f64[1] = sum %o {axes=[1]}"),
    "integer sum over no axes": ("%r: i64[2,3] = sum %n {axes=[]}", "%n", "%r: i64[3] = sum %n {axes=[0]}"),
    "max over no axes": ("%r: f64[2,3] = max %x {axes=[]}", "%x", "%r: f64[3] = max %x {axes=[0]}"),
    "constants are folded": ("%a: f64[] = full {value=2.0, shape=[], dtype=f64}\n%b: f64[] = exp2 %a\n%r: f64[] = multiply %b, %s",
                             "%r: f64[] = multiply %s, 4.0", "%b: f64[] = exp2 %s\n%r: f64[] = multiply %b, %s"),
    "equal values are one": ("%a: f64[3] = sin %v\n%b: f64[3] = sin %v\n%r: f64[3] = subtract %a, %b",
                             "%a: f64[3] = sin %v\n%r: f64[3] = subtract %a, %a",
                             "%a: f64[3] = sin %v\n%b: f64[3] = cos %v\n%r: f64[3] = subtract %a, %b"),
    "x y == y x": ("%a: f64[2,3] = multiply %x, 2.0\n%b: f64[2,3] = multiply 2.0, %x\n%r: f64[2,3] = subtract %a, %b",
                   "%a: f64[2,3] = multiply %x, 2.0\n%r: f64[2,3] = subtract %a, %a",
                   "%a: f64[2,3] = subtract %x, 2.0\n%b: f64[2,3] = subtract 2.0, %x\n%r: f64[2,3] = subtract %a, %b"),
}


def graph_of(body):
    statements = body.split("\n") if " = " in body else []
    result = "%r" if any(line.startswith("%r:") for line in statements) else statements[-1].partition(":")[0] if statements else body
    kind = dict(part.split(": ") for part in INPUTS.split(", ")) | {
        line.partition(":")[0]: line.partition(": ")[2].partition(" =")[0] for line in statements}
    lines = "".join(f"  {line}\n" for line in statements)
    return parse_graph(f"graph g({INPUTS}) -> {kind[result]} {{\n{lines}  return {result}\n}}\n")


def shape_of(graph):
    """The text without names: what is computed, not what it is called."""
    names = {value: f"%{k}" for k, value in enumerate(graph.body)}
    return [graph_to_text(graph.replace(body=graph.body), sources=False).count("\n"),
            [(value.op.name, [names.get(x, x.name) for x in value.operands], str(value.type), str(dict(value.attrs))) for value in graph.body],
            [names.get(x, x.name) for x in graph.outputs]]


ZERO_CHANGES_SIGN = {"0 + v into a slice"}                             # -0.0 stays, where 0.0 + -0.0 would be 0.0
ARRAYS = [np.array([[0.0, -0.0, np.nan], [np.inf, -2.5, 3.0]]), np.array([[1.0, -0.0, 2.0], [np.nan, -np.inf, 0.0]]),
          np.array([[True, False, True], [False, True, False]]), np.arange(6).reshape(2, 3), np.array([-0.0, 1.5, np.nan]), np.float64(0.75),
          np.array([2, 0, 2])]


@pytest.mark.parametrize("equation", CASES)
def test_fires(equation):
    before, after = graph_of(CASES[equation][0]), graph_of(CASES[equation][1])
    found = simplify(before).graph
    verify(found)
    assert shape_of(found) == shape_of(after), graph_to_text(found)
    assert simplify(found).graph is found
    [x], [y] = interpret(before, ARRAYS), interpret(found, ARRAYS)
    np.testing.assert_array_equal(x, y)
    if x.dtype.kind == "f" and equation not in ZERO_CHANGES_SIGN:
        np.testing.assert_array_equal(np.signbit(x[~np.isnan(x)]), np.signbit(y[~np.isnan(y)]))


@pytest.mark.parametrize("equation", CASES)
def test_does_not_fire(equation):
    graph = graph_of(CASES[equation][2])
    found = simplify(graph).graph
    assert shape_of(found) == shape_of(graph), graph_to_text(found)


def test_every_rule_of_its_own_has_a_case():
    """Rules of elementwise ops without one of their own (folding, reshapes) are covered by the general cases."""
    covered = {line.split(" = ")[1].split()[0] for before, _, _ in CASES.values() for line in before.split("\n") if " = " in line}
    rest = {"min", "prod", "any", "all"}                   # one function with max
    own = {op.name for op in RULES if op.kind != "elementwise"}
    assert own - rest <= covered


@pytest.mark.parametrize("first, second", [(2.0, 100.0), (-4.0, 1.0), (8.0, -3e37), (2.0, 0.75), (0.5, 4.0), (2.0, 3e38), (2.0, 1e-45), (3.0, 2.0)])
def test_scaling_twice_has_the_same_bits(first, second):
    """With numbers that become infinite, or have few bits left, on the way."""
    first, second = (float(np.float32(factor)) for factor in (first, second))
    graph = graph_of(f"%a: f32[2,3] = cast %x {{dtype=f32}}\n%m: f32[2,3] = multiply %a, {first}\n%b: f32[2,3] = multiply %m, {second}\n"
                     "%r: f64[2,3] = cast %b {dtype=f64}")
    found = simplify(graph).graph
    assert (found is not graph) == ((first, second) in ((2.0, 100.0), (-4.0, 1.0), (8.0, float(np.float32(-3e37)))))
    tiny, huge = np.float64(np.finfo(np.float32).smallest_subnormal), np.float64(np.finfo(np.float32).max)
    for x in (np.array([[tiny, 3 * tiny, -5 * tiny], [1.1754945e-38, np.nan, -np.inf]]),
              np.array([[huge, -huge / 2, huge / 3], [0.0, -0.0, huge / 7.9]]), np.array([[1 / 3, 0.1, -1e-30], [1e30, 1.7, 12345.678]])):
        arrays = [x, *ARRAYS[1:]]
        [one], [two] = interpret(graph, arrays), interpret(found, arrays)
        np.testing.assert_array_equal(np.asarray(one), np.asarray(two))


QUOTIENTS = {"x / 2**k == x * 2**-k": ("%r: f64[2,3] = divide %x, 128.0", "%r: f64[2,3] = multiply %x, 0.0078125",
                                       "%r: f64[2,3] = divide %x, 100.0")}


@pytest.mark.parametrize("equation", QUOTIENTS)
def test_only_legalisation_turns_quotients_into_products(equation):
    before, after, other = map(graph_of, QUOTIENTS[equation])
    assert simplify(before).graph is before
    assert shape_of(legalize(before)) == shape_of(after)
    assert legalize(other) is other


@pytest.mark.parametrize("dtype", [np.complex128, np.complex64, np.float64])
def test_constants_in_two_places(dtype):
    """Complex ones, too: joined where they are the same number, and their zeros have the same signs."""
    zeros = (0, 0.0, -0.0, 1.5, complex(0, -0.0), complex(-0.0, 0), complex(0, 2)) if dtype is not np.float64 else (0, -0.0, 1.5)
    for first in zeros:
        for second in zeros:
            def fun(x, first=first, second=second):
                x[:2] = first
                x[2:5] = second
                return x
            found, expected = bw.jit(fun, mutates=False)(np.ones(6, dtype)), fun(np.ones(6, dtype))
            assert found.tobytes() == expected.tobytes()
