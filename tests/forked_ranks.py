"""Two ranks of gloo for tests that need no launcher: one process imports and forks, which spares an import of torch."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cli.runs import ROOT

FORKED = """
{imports}
import json, os
import torch.distributed as dist
child = os.fork()
rank = 0 if child else 1
os.environ |= {{"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}}
dist.init_process_group("gloo", init_method="file://{store}", rank=rank, world_size=2)
{body}
dist.barrier()
dist.destroy_process_group()
if rank == 0:
    assert os.waitpid(child, 0)[1] == 0
    print("found:" + json.dumps(found), flush=True)
# Not by Python's own end, which takes torch apart.
os._exit(0)
"""


def found_by_ranks(imports: str, body: str, folder: Path) -> Any:
    """What rank 0 holds as `found` after both have run `body`, by JSON; `rank` is there too."""
    script = folder / "ranks.py"
    script.write_text(FORKED.format(imports=imports, body=body, store=folder / "store"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        (sys.executable, str(script)), cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (line,) = [each for each in done.stdout.splitlines() if each.startswith("found:")]
    return json.loads(line.removeprefix("found:"))
