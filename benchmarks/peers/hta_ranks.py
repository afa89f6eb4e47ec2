"""Holistic Trace Analysis of a folder of ranks: load, overlap of communication and compute, temporal breakdown,
potential stragglers."""

import contextlib
import os
import sys
from pathlib import Path

# Without it times are cut to whole microseconds.
os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"

from hta.trace_analysis import TraceAnalysis

traces = sorted(each for each in Path(sys.argv[1]).iterdir() if each.name.endswith((".json", ".json.gz")))
analysis = TraceAnalysis(trace_files=dict(enumerate(map(str, traces))), trace_dir=sys.argv[1])
analysis.get_comm_comp_overlap(visualize=False)
analysis.get_temporal_breakdown(visualize=False)
# It finds none without marks of `ProfilerStep`.
with contextlib.suppress(ValueError):
    analysis.get_potential_stragglers()
