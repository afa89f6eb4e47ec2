"""What `tracekit run` says of programs, held against loops made by hand: `python benchmarks/programs.py OUT [NAME...]`.

The programs are those of `tests/data/programs`, unchanged. By hand the eager and the compiled model are two objects,
never switched by torch's stance: blocks of each in random order, the GPU waited for at their ends. Each is a process of
its own, first by hand. `parts` compiles two modules: by hand each of them alone is eager, too. `OUT/programs.json` has
both speed-ups; nothing here is a test.
"""

import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "tests" / "data" / "programs"
#: The program's arguments on a GPU, and where its source is cut: above is what both variants share.
NAMES: dict[str, tuple[list[str], str]] = {
    "train": (["3000"], "for step in"),
    "accumulate": (["1500"], "for step in"),
    "regional": (["6000"], "for block in model.blocks:"),
    "shapes": (["6000"], "draw = "),
    "compiled_step": (["4000"], "\n\n@torch.compile"),
    "story": (["600"], "painter = "),
    "parts": (["60000"], "with torch.inference_mode"),
}


def steps_of(name: str) -> list[Callable[[], Any]]:
    """One step of the program, eager and compiled; of `parts` further each of its modules alone eager."""
    import torch

    arguments, cut = NAMES[name]
    source = (PROGRAMS / f"{name}.py").read_text().partition(cut)[0]
    sys.argv = [f"{name}.py", *arguments]
    compile_, pairs = torch.compile, []

    def kept(model: Any, **options: Any) -> Any:
        pairs.append((model, compile_(model, **options)))
        return model

    torch.compile = kept
    its: dict[str, Any] = {"__name__": name}
    exec(compile(source, name, "exec"), its)
    torch.compile = compile_
    if name == "train":
        functional = torch.nn.functional

        def train(model: Any) -> None:
            tokens, labels = torch.randint(0, 1000, (2, its["batch"], its["length"]), device=its["device"])
            with torch.autocast(its["device"], torch.bfloat16, enabled=its["GPU"]):
                loss = functional.cross_entropy(model(tokens).flatten(0, 1), labels.flatten())
            loss.backward()
            its["optimizer"].step()
            its["optimizer"].zero_grad(set_to_none=True)

        eager, compiled = pairs[0]
        return [lambda: train(eager), lambda: train(compiled)]
    if name == "accumulate":
        eager = its["Net"]().to(its["device"])
        eager.load_state_dict(its["model"].state_dict())
        compiled = compile_(eager)

        def accumulate(model: Any) -> None:
            for _ in range(4):
                x = torch.randn(its["batch"], its["width"], device=its["device"])
                with torch.autocast(its["device"], torch.float16, enabled=its["GPU"]):
                    loss = model(x).float().square().mean() / 4
                loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

        optimizer = torch.optim.SGD(eager.parameters(), 1e-3)
        return [lambda: accumulate(eager), lambda: accumulate(compiled)]
    if name == "compiled_step":

        def train_step(x: Any) -> Any:
            loss = its["model"](x).square().mean()
            loss.backward()
            its["optimizer"].step()
            its["optimizer"].zero_grad()
            return loss.detach()

        compiled_step = compile_(train_step)

        def inputs() -> Any:
            return torch.randn(its["batch"], its["width"], device=its["device"])

        return [lambda: train_step(inputs()), lambda: compiled_step(inputs())]
    if name == "story":
        eager, compiled = its["Painter"](), its["Painter"]()
        eager.transformer = compiled.transformer._orig_mod
        return [eager.batch_infer, compiled.batch_infer]
    if name == "parts":
        (small, fast_small), (large, fast_large) = pairs

        def part(small: Any, large: Any) -> Callable[[], Any]:
            def once() -> Any:
                with torch.inference_mode():
                    x = torch.randn(its["length"], its["width"], device=its["device"], dtype=its["dtype"])
                    return large(small(x)).float().mean().item()

            return once

        return [
            part(small, large),
            part(fast_small, fast_large),
            part(small, fast_large),
            part(fast_small, large),
        ]
    eager, compiled = pairs[0] if pairs else (its["model"], None)
    if name == "regional":
        import copy

        compiled = copy.deepcopy(eager)
        for block in compiled.blocks:
            block.compile()
    lengths = (64, 128, 256) if name == "shapes" else (its.get("length", 0),)
    drawn = [random.Random(0), random.Random(0)]

    def infer(model: Any, draw: random.Random) -> None:
        with torch.inference_mode():
            dtype = next(eager.parameters()).dtype
            x = torch.randn(1, draw.choice(lengths), its["width"], device=its["device"], dtype=dtype)
            model(x).float().mean().item()

    return [lambda: infer(eager, drawn[0]), lambda: infer(compiled, drawn[1])]


def by_hand(name: str) -> dict[str, Any]:
    eager, compiled, *alone = steps_of(name)
    found = against(eager, compiled)
    return {**found, "alone": [against(each, compiled) for each in alone]} if alone else found


def against(eager: Callable[[], Any], compiled: Callable[[], Any]) -> dict[str, Any]:
    import torch

    wait = torch.cuda.synchronize if torch.cuda.is_available() else (lambda: None)
    variants = (eager, compiled)
    for step in variants:
        for _ in range(12):
            step()
    wait()
    began = time.perf_counter()
    variants[1]()
    wait()
    block = max(4, min(64, math.ceil(0.1 / (time.perf_counter() - began))))
    ratios: list[float] = []
    shuffle = random.Random(1).shuffle
    until = time.perf_counter() + 8
    while time.perf_counter() < until or len(ratios) < 10:
        took = [0.0, 0.0]
        order = [0, 1]
        shuffle(order)
        for which in order:
            for _ in range(3):
                variants[which]()
            wait()
            began = time.perf_counter()
            for _ in range(block):
                variants[which]()
            wait()
            took[which] = time.perf_counter() - began
        ratios.append(math.log(took[0] / took[1]))
    error = statistics.stdev(ratios) / math.sqrt(len(ratios))
    return {
        "speedup": math.exp(statistics.median(ratios)),
        "standard_error": error,
        "rounds": len(ratios),
        "block": block,
    }


def told(name: str, out: Path, variables: dict[str, str]) -> dict[str, Any]:
    """What `tracekit run` finds of it."""
    command = [sys.executable, "-m", "tracekit", "run", "--force", "--time-budget", "8", "--stop"]
    command += ["--out", str(out / name)]
    if name == "story":
        command += ["--step", "function:__main__:Painter.batch_infer"]
    json_path = out / f"{name}.json"
    began = time.perf_counter()
    words = [*command, "--json", str(json_path), str(PROGRAMS / f"{name}.py"), *NAMES[name][0]]
    made = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **variables}, check=False)
    (out / f"{name}.txt").write_text(made.stderr)
    seconds = time.perf_counter() - began
    if made.returncode or not json_path.is_file():
        return {"error": made.stderr[-600:], "seconds": seconds}
    verdict = json.loads(json_path.read_text())["verdict"]
    kept = ("result", "speedup", "ci95", "noise_floor", "a_wall_us", "b_wall_us", "n")
    alone = [line.strip() for line in made.stderr.splitlines() if line.startswith("tracekit: compiling ")]
    told = {"seconds": seconds, **{key: verdict.get(key) for key in kept}}
    return {**told, "alone": alone} if name == "parts" else told


def main() -> None:
    if sys.argv[1] == "--by-hand":
        sys.stdout.write(json.dumps(by_hand(sys.argv[2])))
        return
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {}
    variables = {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}
    for name in sys.argv[2:] or NAMES:
        words = [sys.executable, __file__, "--by-hand", name]
        hand = subprocess.run(words, capture_output=True, text=True, env={**os.environ, **variables}, check=False)
        made = json.loads(hand.stdout) if hand.returncode == 0 else {"error": hand.stderr[-600:]}
        found[name] = {"by_hand": made, "told": told(name, out, variables)}
        sys.stdout.write(f"{name}: {json.dumps(found[name])}\n")
        sys.stdout.flush()
        (out / "programs.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
