"""Holistic Trace Analysis: load, temporal breakdown, idle time, kernel breakdown."""

import os
import sys
import tempfile
from pathlib import Path

# Without it times are cut to whole microseconds.
os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"

from hta.trace_analysis import TraceAnalysis

with tempfile.TemporaryDirectory() as folder:
    source = Path(sys.argv[1]).resolve()
    Path(folder, "rank0.json.gz" if source.suffix == ".gz" else "rank0.json").symlink_to(source)
    analysis = TraceAnalysis(trace_files={0: str(source)}, trace_dir=folder)
    analysis.get_temporal_breakdown(visualize=False)
    analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
    analysis.get_gpu_kernel_breakdown(visualize=False)
