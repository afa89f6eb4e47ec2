"""Findings on what was compiled, what was not, and what that costs."""

from collections.abc import Mapping
from typing import Any

from tracekit.numbers import calls_span, counted, duration, percent
from tracekit.report.words.saying import Sentence

#: What is said of the advice where nothing can be switched on: it saves nothing by itself, and is not tried.
FULLGRAPH = (
    " --fullgraph makes nothing faster: it ends with an error at the first break that is left and names the line, "
    "which is then to be rewritten, or kept out of the model."
)
FELL_BACK = {
    "recompile_limit": "{} was compiled so often that torch gave up: it runs eager",
    "skipped": "Dynamo passed over {}: it runs eager",
    "error": "{} could not be compiled: it runs eager",
}


def check_sentence(facts: Mapping[str, Any]) -> str:
    """`size 0 of x is 4, and was 1 when it was compiled`: the facts of a `FailedGuard`; checks of a kind not known as
    torch writes them."""
    kind, name, then = facts["kind"], facts.get("name"), facts.get("then")
    if kind == "size":
        return f"size {facts['index']} of {name} is {facts['now']}, and was {then} when it was compiled"
    if kind == "size_many":
        return f"size {facts['index']} of {name} is 1 or 0, and was neither when it was compiled"
    if kind == "tensor":
        at = f" {facts['index']}" if facts["index"] else ""
        return f"the {facts['what']}{at} of {name} is {facts['now']}, and was {then} when it was compiled"
    if kind == "length":
        return f"the length of {name} is no longer {then}, as it was when it was compiled"
    if kind == "function" and then:
        was = f"{then['function']} ({then['file']}:{then['line']})"
        return f"{name} is another function than {was}, for which it was compiled"
    if kind == "type":
        return f"{name} is of another type than {then or 'the one'}, for which it was compiled"
    if kind in ("function", "object"):
        return f"{name} is another {kind} than the one for which it was compiled"
    return f"the check {facts['check']} failed"


def graphs_break(
    *, lines: int, longest: list[dict[str, Any]], hints: list[str], counted_by_dynamo: int, **facts: Any
) -> str:
    told = []
    for each in longest:
        cost = f" ({duration(each['per_step_us'])} a step outside of compiled code)" if each["per_step_us"] else ""
        told.append(f"{each['line'] or 'a line not told'}: {each['reason']}{cost}")
    told += [f"and {lines - len(longest)} more"] if lines > len(longest) else []
    hinted = "".join(f" {each.rstrip('.')}." for each in hints)
    text = f"{'; '.join(told)}.{hinted}"
    if counted_by_dynamo:
        # Dynamo's own count, which other parts of a report show: it counts a line again for each function it compiles.
        breaks = counted(counted_by_dynamo, "break")
        text += f" Dynamo counted {breaks}, one for each function compiled up to such a line."
    return text if facts["can_be_switched"] else text + FULLGRAPH


def cold_start(*, startup_us: float, call_saving_us: float, medians_apart_us: float | None, **facts: Any) -> str:
    saved = duration(call_saving_us)
    # By the speed-up, as the number of calls is; said where the two medians differ by something else.
    if medians_apart_us is not None and duration(medians_apart_us) != saved:
        saved += f" (by the speed-up of the rounds; the medians are {duration(medians_apart_us)} apart)"
    text = f"Starting up compiled takes {duration(startup_us)} more than steady calls, and each call saves {saved}."
    if warm := facts["warm"]:
        pays = calls_span(warm["calls"], warm["calls_at_most"])
        text += f" With a warm cache it takes {duration(warm['startup_us'])} and pays after {pays}."
    return (
        f"{text} For fewer calls in one process keep Inductor's cache between processes (TORCHINDUCTOR_CACHE_DIR, or "
        f"torch.compiler.save_cache_artifacts){', or compile one block of many' if facts['can_be_regional'] else ''}."
        f"{'' if facts['warm_was_measured'] else ' What a warm cache saves was not measured: --startup does.'}"
    )


def recompiled_during_timing(*, calls: int, first: list[dict[str, Any]], cost_us: float | None, **facts: Any) -> str:
    if not calls:
        ran = counted(facts["compilations"], "compilation")
        return f"{ran} ran inside timed calls, so the times are not of compiled code alone."
    told = []
    for call in first:
        took = f": {call['wall_us'] / 1e6:.2f} s" if call["wall_us"] is not None else ""
        graphs = (
            f"{call['cuda_graphs']} CUDA graphs were recorded" if call["cuda_graphs"] else "no failed check was told"
        )
        checks = "; ".join(map(check_sentence, call["failed_checks"]))
        told.append(f"call {call['call']} compiled again{took}: {checks or graphs}")
    told += [f"and {calls - len(first)} calls more"] if calls > len(first) else []
    text = "; ".join(told)
    cost = f" This cost {cost_us / 1e6:.2f} s over {counted(calls, 'call')}." if cost_us is not None else ""
    return f"{text[:1].upper()}{text[1:]}.{cost} {_how_to_warm_up(**facts)}"


def _how_to_warm_up(*, warmed_up_at: dict[str, int], any_size: bool, failed_for_one: bool, **_: Any) -> str:
    told = "Warm up with the inputs you run"
    if warmed_up_at:
        sizes = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in warmed_up_at.items())
        others = f"The warm-up calls had other sizes ({sizes}) than the timed ones"
        told = f"{others}: warm up with the sizes you run, all of them"
    if not any_size:
        return f"{told}, or compile for any size with --dynamic."
    if failed_for_one:
        return f"{told}. --dynamic was on: torch makes code of its own for a size of 1 (or 0) all the same."
    return f"{told}. --dynamic was on, and does not reach these checks."


def eager_fallback_title(*, side: str, part: dict[str, Any] | None, **_: Any) -> str:
    if part is None:
        return f"{side} ran eager"
    named = part["function"] or "a frame without a name"
    return FELL_BACK[part["kind"]].format(f"{named} ({part['where']})" if part["where"] else named)


def eager_fallback(*, part: dict[str, Any] | None, ran_eager: bool, eager_gpu_share: float | None, **_: Any) -> str:
    if ran_eager:
        share = "No recorded step entered compiled code."
    elif eager_gpu_share is None:
        share = "The rest ran compiled."
    else:
        share = f"{percent(eager_gpu_share, 0)} of GPU time was launched outside of compiled code."
    return f"{part['reason'] if part else 'torch.compile gave no reason'}. {share}"


def skipped_cuda_graphs(*, skips: list[dict[str, Any]], graphed_share: float | None, **_: Any) -> str:
    reasons = "; ".join(f"{each['reason'] or 'reason not told'} ({each['times']} times)" for each in skips)
    why = f"Torch skipped CUDA graphs: {reasons}." if reasons else "Torch did not say why."
    if graphed_share is None:
        return why
    return f"{why} {percent(graphed_share, 0)} of the kernels were started by CUDA graphs."


#: Title and evidence by the finding's code.
WORDS: dict[str, tuple[Sentence, Sentence]] = {
    "broken_graphs": ("Graphs break at {lines:counted line} in {side}", graphs_break),
    "cold_start": (
        lambda calls, calls_at_most, **_: f"Compiling pays after {calls_span(calls, calls_at_most)} calls",
        cold_start,
    ),
    "compile_slower": (
        "Compiling made this slower",
        (
            "A call takes {b_wall_us:duration} compiled and {a_wall_us:duration} eager, unprofiled medians. Leave "
            "torch.compile off for this model, batch and mode."
        ),
    ),
    "compiled_again": (
        "{side} was compiled again {times} times before it was quiet",
        lambda function, where, failed_check, times, dearest_s, whole_s, **_: (
            f"{function or 'A function'} ({where or 'place not told'}): {check_sentence(failed_check)}. It took"
            f" {f'{dearest_s:.1f} s, all together ' if times > 1 and dearest_s is not None else ''}{whole_s:.1f} s."
        ),
    ),
    "eager_fallback": (eager_fallback_title, eager_fallback),
    "little_compiled": (
        "Compiled code does {compiled_share:percent 0} of the GPU's work in {side}",
        lambda compiled_share, busy_us, scope, **_: (
            f"{percent(1 - compiled_share, 0)} of GPU time"
            f"{'' if busy_us is None else f' of {duration(busy_us)} a step'} was launched outside of compiled code."
            f"{'' if scope is None else f' The scope was {scope}.'}"
        ),
    ),
    "recompile_limit": (eager_fallback_title, eager_fallback),
    "recompiled_during_timing": ("Code of {side} was compiled again inside timed calls", recompiled_during_timing),
    "skipped_cuda_graphs": (
        lambda graphed_share, **_: f"CUDA graphs were asked for and {'partly ' if graphed_share else ''}skipped",
        skipped_cuda_graphs,
    ),
    "uncompiled_component": (
        lambda component, partly_compiled, **_: (
            f"{'Part of ' if partly_compiled else ''}{component} is not compiled, and has kernels to fuse"
        ),
        lambda fusible_us, busy_us, kept_share, **_: (
            f"Element-wise work, norms, reductions and copies there take {duration(fusible_us)} of GPU time a call, "
            f"{percent(fusible_us / busy_us, 0)}. What was fused in the compiled part kept {percent(kept_share, 0)} of "
            "its time."
        ),
    ),
}
