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
from tracekit.names import NO_WORK, plain_name

#: `aten::add`, `flash_attn::forward`, and Inductor's C++ kernels; autograd's nodes and compiled regions only hold them.
WORKING = re.compile(rf"(?!(torch::)?autograd::)\w+::\w|(graph_\d+_)?{FUSED}")
#: What copies, if at all, by another operator within.
HOLDING = frozenset(("contiguous", "expand_as", "flatten", "numpy_T", "ravel", "type_as"))
#: A library's work, by what the operator is called.
PRODUCT = re.compile(
    r"(.*mkl.*linear|q?linear|_?(int_|grouped_|scaled_)?(b|add|addb|baddb)?mm|matmul|(add)?mv|(tensor)?dot|einsum|inner)(_|$)"
)
#: A number a kind of library work; 0 is none.
CODES = {"gemm": 1, "attention": 2, "convolution": 3}
#: Work that no library does, by the operators that it has most.
PLAIN = {
    **dict.fromkeys(("copy", "clone", "_to_copy", "cat", "stack", "index_select", "gather", "repeat", "roll"), "copy"),
    **dict.fromkeys(("sum", "mean", "max", "min", "amax", "amin", "any", "all", "var", "std", "norm"), "reduction"),
    **dict.fromkeys(
        """add sub rsub mul div neg abs exp log sqrt rsqrt pow sin cos tanh sigmoid where clamp maximum minimum
        masked_fill fill zero lerp addcmul addcdiv threshold_backward""".split(),
        "pointwise",
    ),
}


def cpu_work(trace: Trace) -> Trace:
    """The trace with its outermost operators as activities of device 0, a stream a thread. One that is there for a
    library's call is called after that (`aten::addmm` of `aten::linear`), an Inductor kernel without the number of its
    graph. Each is launched by a call that takes no time, where that begins, or else the last operator in it: a dispatch
    mode's spans are around that, and not around what it was taken apart from."""
    operators = trace.host.filter((pl.col("kind") == "op") & (pl.col("end_ns") > pl.col("start_ns")))
    distinct = operators["name"].unique()
    known = distinct.filter(pl.Series([_works(name) for name in distinct], dtype=pl.Boolean))
    # Those of one thread stay in the order of their start.
    operators = operators.filter(pl.col("name").is_in(known.implode())).sort("thread", maintain_order=True)
    threads, starts, ends = columns(operators, "thread", "start_ns", "end_ns")
    line = make_line(trace, np.unique(threads))
    parents = nest(line.place(threads, starts), line.place(threads, ends)).parents
    outermost, rows = np.flatnonzero(parents < 0), np.arange(len(parents))
    around = np.where(parents < 0, rows, nearest(parents, parents < 0))
    # Of each outermost one the last library call in it, which stands the deepest: of one kind with what it is itself.
    families = {name: _family(name) for name in known}
    codes = operators["name"].replace_strict({name: CODES.get(each, 0) for name, each in families.items()}).to_numpy()
    by_library = (codes > 0) & (codes[around] == codes)
    named, last = rows.copy(), rows.copy()
    last[around] = rows
    for each in (named, last):
        each[around[by_library]] = rows[by_library]
    told = operators[outermost].with_columns(
        name=operators["name"].gather(named[outermost]), called_ns=operators["start_ns"].gather(last[outermost])
    )
    told = told.sort("start_ns", maintain_order=True).with_row_index("correlation")
    names = {name: GRAPH_PREFIX.sub("", name) for name in known}
    activities = told.with_columns(
        kind=pl.col("name").replace_strict(families, return_dtype=pl.String),
        name=pl.col("name").replace_strict(names, return_dtype=pl.String),
        device=0,
        stream="thread",
    )
    calls = told.with_columns(name=pl.lit("begins"), start_ns="called_ns", end_ns="called_ns").sort("start_ns")
    return replace(trace, activities=_like(activities, trace.activities), calls=_like(calls, trace.calls))


def _works(operator: str) -> bool:
    name = plain_name(operator)
    return WORKING.match(operator) is not None and name not in NO_WORK and name not in HOLDING


@cache
def _family(operator: str) -> str:
    if FUSED in operator:
        return CPP
    name = plain_name(operator)
    if name in PLAIN:
        return PLAIN[name]
    family = "gemm" if PRODUCT.match(name) else family_of(name)
    # How long a collective of gloo is at work its own operator does not say.
    return "other" if family == "communication" else family


def _like(table: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """With the columns of another; what it has none of is None."""
    there = {name: pl.col(name) if name in table.columns else pl.lit(None).alias(name) for name in other.columns}
    return table.select(there[name].cast(dtype) for name, dtype in other.schema.items())
