"""A CPU's operators as what a GPU's activities are: one after the other, each where it stands in its step."""

import re
from functools import cache

import numpy as np
import polars as pl
from msgspec.structs import replace

from tracekit.analysis.cpu import FUSED, GRAPH_PREFIX
from tracekit.analysis.kernels import family_of
from tracekit.analysis.nesting import make_line, nearest, nest
from tracekit.analysis.window import columns
from tracekit.model.sequence import CPP
from tracekit.model.trace import Trace

#: `aten::add`, `flash_attn::forward`, and Inductor's C++ kernels; autograd's nodes and compiled regions only hold them.
WORKING = re.compile(rf"(?!autograd::)\w+::\w|(graph_\d+_)?{FUSED}")
#: What only looks at the same memory otherwise, or is yet to be written.
VIEWS = re.compile(
    r"aten::(view|_unsafe_view|t|transpose|permute|expand|expand_as|select|slice|narrow|squeeze|unsqueeze|split\w*|chunk"
    r"|unbind|unflatten|as_strided|detach|alias|empty\w*|unfold|diagonal|movedim|swapaxes|lift_fresh|resolve_\w+)_?$"
)
#: What operators are called that a library multiplies matrices for.
PRODUCT = re.compile(r"_?(addmm|mm|bmm|baddbmm|addbmm|linear|matmul|mv|addmv|dot|einsum|mkl_linear|scaled_mm)")
LIBRARY = ("gemm", "attention", "convolution")
POINTWISE = re.compile(r"(add|sub|mul|div|neg|exp|log|r?sqrt|pow|tanh|sigmoid|where|clamp|masked_fill|fill|zero)_?$")


def cpu_work(trace: Trace) -> Trace:
    """The trace with its outermost operators as activities of device 0, a stream a thread. What a library does within
    one is called after that (`aten::addmm` of `aten::linear`), an Inductor kernel without the number of its graph. Each
    is launched by a call that takes no time, where that begins, or else the last operator in it: a dispatch mode's
    spans are around that, and not around what it was taken apart from."""
    operators = trace.host.filter(pl.col("kind") == "op")
    distinct = operators["name"].unique()
    wanted = [WORKING.match(name) is not None and VIEWS.match(name) is None for name in distinct]
    # Those of one thread stay in the order of their start.
    known = distinct.filter(pl.Series(wanted, dtype=pl.Boolean))
    operators = operators.filter(pl.col("name").is_in(known.implode())).sort("thread", maintain_order=True)
    threads, starts, ends = columns(operators, "thread", "start_ns", "end_ns")
    line = make_line(trace, np.unique(threads))
    parents = nest(line.place(threads, starts), line.place(threads, ends)).parents
    outermost, rows = np.flatnonzero(parents < 0), np.arange(len(parents))
    around = np.where(parents < 0, rows, nearest(parents, parents < 0))
    # Of each outermost one the last library call in it, which stands the deepest.
    of_library = operators["name"].is_in([name for name in known if _family(name) in LIBRARY]).to_numpy()
    named, last = rows.copy(), rows.copy()
    last[around] = rows
    for each in (named, last):
        each[around[of_library]] = rows[of_library]
    told = operators[outermost].with_columns(
        name=operators["name"].gather(named[outermost]), called_ns=operators["start_ns"].gather(last[outermost])
    )
    told = told.sort("start_ns", maintain_order=True).with_row_index("correlation")
    families = {name: _family(name) for name in known}
    names = {name: GRAPH_PREFIX.sub("", name) for name in known}
    activities = told.with_columns(
        kind=pl.col("name").replace_strict(families, return_dtype=pl.String),
        name=pl.col("name").replace_strict(names, return_dtype=pl.String),
        device=0,
        stream="thread",
    )
    calls = told.with_columns(name=pl.lit("begins"), start_ns="called_ns", end_ns="called_ns").sort("start_ns")
    return replace(trace, activities=_like(activities, trace.activities), calls=_like(calls, trace.calls))


@cache
def _family(operator: str) -> str:
    if FUSED in operator:
        return CPP
    name = operator.partition("::")[2]
    if PRODUCT.match(name):
        return "gemm"
    return "pointwise" if POINTWISE.match(name) else family_of(name)


def _like(table: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """With the columns of another; what it has none of is None."""
    there = {name: pl.col(name) if name in table.columns else pl.lit(None).alias(name) for name in other.columns}
    return table.select(there[name].cast(dtype) for name, dtype in other.schema.items())
