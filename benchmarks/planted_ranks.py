"""Ranks with a planted cause of lateness: what a job that `tracekit ranks` should see through looks like.

    torchrun --nproc-per-node 2 benchmarks/planted_ranks.py OUT [--parallel ddp,fsdp2,tp] [--form eager,compiled]

Writes OUT/PARALLEL-FORM-PLANT/rankN.json.gz, three steps each, and OUT/truth-rankN.json: what was planted, and how long
it took by the host's clock. Rank 1 is the late one, of `two_` plants rank 2 as well. `planted_ranks_check.py` holds
what tracekit says against that.

Without several GPUs, N processes of NCCL can share one by CUDA's multi-process service, each told that it is a host of
its own (docs/notes).
"""

import argparse
import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

LATE, ALSO_LATE, STEPS = 1, 2, 3
#: Microseconds on the GPU, on the host.
DELAYS_US = (50, 250, 1000, 5000)
PLANTS = (
    *(f"gpu_{us}" for us in DELAYS_US),
    *(f"host_{us}" for us in DELAYS_US),
    *("item", "loader", "batch", "work", "recompile"),
)


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        #: How often the MLP's first product is made in vain.
        self.more = 0
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, length, 3, -1, x.shape[-1] // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, -1))
        normed = self.norm2(x)
        for _ in range(self.more):
            normed = normed + 1e-6 * self.up(normed)[..., : normed.shape[-1]]
        return x + self.down(nn.functional.gelu(self.up(normed)))


class Model(nn.Module):
    def __init__(self, width: int, blocks: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width, width // 64) for _ in range(blocks))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x


class Job:
    """A model under one way of parallelism and compilation, and one step of it."""

    def __init__(self, parallel: str, form: str, width: int) -> None:
        self.cuda = torch.cuda.is_available()
        self.device = torch.device("cuda", torch.cuda.current_device()) if self.cuda else torch.device("cpu")
        dtype = torch.bfloat16 if self.cuda else torch.float32
        blocks = 2 if width < 512 else 4
        torch.manual_seed(0)
        model: Any = Model(width, blocks).to(self.device, dtype)
        self.parallel, self.width, self.blocks = parallel, width, model.blocks
        self.batch, self.length = (2, 8) if width < 512 else (1, 128) if parallel == "tp" else (4, 1024)
        mode = "reduce-overhead" if form == "graphed" else "default"
        if parallel == "tp":
            self._shard(model)
        if parallel == "fsdp2":
            from torch.distributed.fsdp import fully_shard

            for block in model.blocks:
                if form != "eager":
                    block.compile(mode=mode)
                fully_shard(block)
            fully_shard(model)
        elif parallel == "ddp":
            model = nn.parallel.DistributedDataParallel(model, device_ids=[self.device.index] if self.cuda else None)
            model = torch.compile(model, mode=mode) if form != "eager" else model
        elif form != "eager":
            model = torch.compile(model, mode=mode)
        self.model = model
        self.optimizer = None if parallel == "tp" else torch.optim.AdamW(model.parameters(), fused=self.cuda)
        self.data = torch.randn(self.batch, self.length, width, device=self.device, dtype=dtype)
        self.recompiling = torch.compile(lambda x: x.sin().sum() + x.shape[0], dynamic=False)
        self.seen = 1

    def _shard(self, model: Model) -> None:
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

        mesh = dist.init_device_mesh(self.device.type, (dist.get_world_size(),))
        for block in model.blocks:
            plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
            parallelize_module(block, mesh, plan)

    def step(self, plant: Callable[[torch.Tensor], torch.Tensor]) -> None:
        data = plant(self.data)
        if self.optimizer is None:
            with torch.no_grad():
                self.model(data)
            return
        self.model(data).float().square().mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def wait(self) -> None:
        if self.cuda:
            torch.cuda.synchronize()


def plant_of(name: str, job: Job, cycles_per_us: float, took_us: list[float]) -> Callable[[torch.Tensor], torch.Tensor]:
    """What a late rank does at the beginning of a step; of `work`, in every block of it."""
    two, kind, us = name.startswith("two_"), *name.removeprefix("two_").partition("_")[::2]
    late = kind != "clean" and dist.get_rank() in ((LATE, ALSO_LATE) if two else (LATE,))
    for block in job.blocks:
        block.more = 1 if late and kind == "work" else 0

    def plant(data: torch.Tensor) -> torch.Tensor:
        began = time.perf_counter_ns()
        if kind == "gpu" and job.cuda:
            torch.cuda._sleep(int(float(us) * cycles_per_us))
        elif kind == "host":
            until = began + int(us) * 1000
            while time.perf_counter_ns() < until:
                pass
        elif kind == "item":
            # Waits for what the GPU has to do, and is a line of the user's own.
            busy = data
            for _ in range(40):
                busy = busy * 1.0001
            float(busy.float().sum().item())
        elif kind == "loader":
            with torch.profiler.record_function("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"):
                time.sleep(0.004)
        elif kind == "batch" and job.parallel == "ddp":
            data = torch.cat((data, data[: max(len(data) // 2, 1)]))
        elif kind == "recompile":
            job.seen += 1
            job.recompiling(job.data.new_ones(job.seen, 3))
        took_us.append((time.perf_counter_ns() - began) / 1e3)
        return data

    return plant if late else lambda data: data


@contextlib.contextmanager
def recorded(path: Path, cuda: bool) -> Iterator[None]:
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]
    path.parent.mkdir(parents=True, exist_ok=True)
    with profile(activities=activities) as profiler:
        yield
    profiler.export_chrome_trace(str(path))


def cycles_per_us() -> float:
    """Of `torch.cuda._sleep`."""
    if not torch.cuda.is_available():
        return 0.0
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(1_000_000)
    begin.record()
    torch.cuda._sleep(20_000_000)
    end.record()
    torch.cuda.synchronize()
    return 20_000_000 / (begin.elapsed_time(end) * 1e3)


#: Name, and whether a rank's share or the whole is what the NCCL tests call the size.
COLLECTIVES: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], Any]] = {
    "all_reduce": lambda whole, other, part: dist.all_reduce(whole),
    "all_gather": lambda whole, other, part: dist.all_gather_into_tensor(whole, part),
    "reduce_scatter": lambda whole, other, part: dist.reduce_scatter_tensor(part, whole),
    "all_to_all": lambda whole, other, part: dist.all_to_all_single(whole, other),
}


def bandwidth(out: Path, rank: int, cycles: float, megabytes: int) -> dict[str, Any]:
    """Each collective, timed by events with all ranks aligned by a barrier, then recorded with one rank late."""
    whole = torch.randn(megabytes << 19, device="cuda", dtype=torch.bfloat16)
    other = whole.clone()
    part = whole[: whole.numel() // dist.get_world_size()].clone()
    aligned_us: dict[str, list[float]] = {}
    for name, collective in COLLECTIVES.items():
        aligned_us[name] = []
        for _ in range(12):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            dist.barrier()
            torch.cuda.synchronize()
            dist.barrier()
            begin.record()
            collective(whole, other, part)
            end.record()
            torch.cuda.synchronize()
            aligned_us[name].append(begin.elapsed_time(end) * 1e3)
        del aligned_us[name][:2]
    with recorded(out / f"bandwidth-{megabytes}MB-gpu_1000" / f"rank{rank}.json.gz", True):
        for number in range(10):
            with torch.profiler.record_function(f"tracekit.step#{number}"):
                for collective in COLLECTIVES.values():
                    if rank == LATE:
                        torch.cuda._sleep(int(1000 * cycles))
                    collective(whole, other, part)
                torch.cuda.synchronize()
    return {"aligned_us": aligned_us, "bytes": whole.numel() * whole.element_size()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--parallel", default="ddp,fsdp2,tp")
    parser.add_argument("--form", default="eager,compiled,graphed")
    parser.add_argument("--plants", default=",".join(PLANTS))
    parser.add_argument("--width", type=int, default=2048, help="of the model; below 512 tokens are few, too")
    parser.add_argument("--cleans", type=int, default=2, help="how often nothing is planted")
    parser.add_argument("--bandwidth", default="256", help="megabytes, several with commas")
    asked = parser.parse_args()
    rank, cuda = int(os.environ["RANK"]), torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("nccl" if cuda else "gloo")
    cycles = cycles_per_us()
    truth: dict[str, Any] = {"cycles_per_us": cycles}
    plants = [*(f"clean_{number}" for number in range(asked.cleans)), *asked.plants.split(",")]
    for parallel in asked.parallel.split(","):
        for form in asked.form.split(","):
            # NCCL's kernels of DDP and FSDP2 are in no graph.
            if form == "graphed" and parallel != "tp":
                continue
            torch._dynamo.reset()
            job = Job(parallel, form, asked.width)
            for name in plants:
                if name == "batch" and parallel != "ddp":
                    continue
                record(job, name, cycles, asked.out / f"{parallel}-{form}-{name}", truth)
    for megabytes in asked.bandwidth.split(",") if cuda and asked.bandwidth else ():
        truth[f"bandwidth-{megabytes}MB-gpu_1000"] = bandwidth(asked.out, rank, cycles, int(megabytes))
    (asked.out / f"truth-rank{rank}.json").write_text(json.dumps(truth))
    dist.barrier()
    # After CUDA graphs with NCCL, destroying the group hangs.
    os._exit(0)


def record(job: Job, name: str, cycles: float, folder: Path, truth: dict[str, Any]) -> None:
    """Three steps, after some that are not recorded; what was planted goes into `truth`."""
    took_us: list[float] = []
    plant = plant_of(name, job, cycles, took_us)
    for _ in range(4 if name in ("clean_0", "batch", "work") else 2):
        job.step(plant)
        job.wait()
    took_us.clear()
    walls_us = []
    dist.barrier()
    with recorded(folder / f"rank{dist.get_rank()}.json.gz", job.cuda):
        for number in range(STEPS):
            began = time.perf_counter_ns()
            with torch.profiler.record_function(f"tracekit.step#{number}"):
                job.step(plant)
                job.wait()
            walls_us.append((time.perf_counter_ns() - began) / 1e3)
    truth[folder.name] = {"took_us": took_us, "wall_us": walls_us}
    dist.barrier()


if __name__ == "__main__":
    main()
