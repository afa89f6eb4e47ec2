"""What HTA, or TraceLens where its checkout is named, tells of a folder of ranks, as JSON: by rank the share of
communication that other work covers, and microseconds of waiting; and who is a straggler.

    ranks_told.py FOLDER hta|TRACELENS
"""

import contextlib
import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

# Without it HTA cuts times to whole microseconds.
os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"


def of_hta(folder: Path, traces: list[str]) -> dict[str, Any]:
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_files=dict(enumerate(traces)), trace_dir=str(folder))
    overlap = analysis.get_comm_comp_overlap(visualize=False)
    told: dict[str, Any] = {"overlap": dict(zip(overlap["rank"], overlap["comp_comm_overlap_pctg"], strict=True))}
    try:
        told["stragglers"] = list(analysis.get_potential_stragglers())
    except (ValueError, KeyError) as error:
        told["error"] = f"{type(error).__name__}: {error}"
    return told


def of_tracelens(traces: list[str]) -> dict[str, Any]:
    from TraceLens import NcclAnalyser

    analyser = NcclAnalyser(traces, len(traces))
    try:
        table = analyser.build_df_straggler_summary(strict_metadata_check=False)
    except (ValueError, KeyError) as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {
        "waiting": dict(zip(table["rank"], table["total_wait_time_us"], strict=True)),
        "last": dict(zip(table["rank"], table["times_arrived_last"], strict=True)),
        "collectives": int(table["num_collectives"].iloc[0]),
    }


folder, peer = Path(sys.argv[1]), sys.argv[2]
found = [each for each in folder.iterdir() if each.name.endswith((".json", ".json.gz"))]
found.sort(key=lambda each: [int(number) for number in re.findall(r"\d+", each.name)])
with contextlib.redirect_stdout(io.StringIO()):
    if peer == "hta":
        answer = of_hta(folder, list(map(str, found)))
    else:
        sys.path.insert(0, peer)
        answer = of_tracelens(list(map(str, found)))
plain = {
    key: {str(k): float(v) for k, v in told.items()} if isinstance(told, dict) else told for key, told in answer.items()
}
print(json.dumps(plain, default=int))  # noqa: T201
