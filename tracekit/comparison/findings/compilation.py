"""Is compiled code broken up by lines that Dynamo cannot trace, or compiled more than once? And what may let
torch.compile compile what it compiled nothing of?"""

from tracekit.comparison.commands import profile_command, run_again, switched_command
from tracekit.comparison.judging.timed import compilations_while_timed, find_compiling_costs
from tracekit.comparison.waiting import idle_at_most, most_slowed
from tracekit.model.advice import Advice
from tracekit.model.comparison import Comparison, Finding
from tracekit.model.compilation import GraphBreak, NotCompiledCode
from tracekit.model.note import distinct
from tracekit.model.run import Run
from tracekit.model.single_run import Remedy, RemedyCode
from tracekit.statements.advice import RunAgain
from tracekit.statements.findings import compiling
from tracekit.statements.guards import Size, check_of

#: This share of the call spent between compiled graphs is worth an action.
COSTLY = 0.02
#: Causes of the GPU's idle time at a break: the user's own code, what it calls, and finding the code to go on with.
OUTSIDE_GRAPHS = ("launch_call", "op_dispatch", "guards", "memory", "gc", "python")
#: So many breaks are named, and so many calls.
NAMED = 3
#: Settings of Dynamo that a hint of torch's may name, and the variables that set them for one command.
SWITCHES = {
    "capture_scalar_outputs": "TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS",
    "capture_dynamic_output_shape_ops": "TORCHDYNAMO_CAPTURE_DYNAMIC_OUTPUT_SHAPE_OPS",
}
ANY_SIZES = {"dynamic": "True"}
#: What to change where nothing was compiled for this reason.
IN_CODE: dict[NotCompiledCode, RemedyCode] = {
    "scalar_read": "compute_on_gpu",
    "data_dependent_branch": "select_on_gpu",
    "data_dependent_shape": "fix_sizes",
    "untraceable_call": "move_call",
    "compiler_disabled": "allow_compiler",
    "graph_break_call": "remove_break",
    "generator": "return_values",
    "context_manager": "move_context",
}
#: Dynamo's settings under which the graph takes it up.
CAPTURED: dict[NotCompiledCode, str] = {
    "scalar_read": SWITCHES["capture_scalar_outputs"],
    "data_dependent_shape": SWITCHES["capture_dynamic_output_shape_ops"],
}
REGIONAL = {"scope": "regional"}


def find_broken_graphs(comparison: Comparison) -> Finding | None:
    """Found when B's graphs break. The saving is the host time outside of compiled code in the frames that broke while
    the GPU was idle, as recorded with a host as slow as timed calls met, but no more than the call's idle time with
    causes that lie there: what following the advice can save at most. What breaks in torch's own code is no part.
    Of a CPU nobody knows."""
    side = comparison.b
    breaks = side.diagnostics.breaks if side.diagnostics else ()
    if not breaks:
        return None
    bounds = [us for us in (idle_at_most(side, OUTSIDE_GRAPHS), side.wall_us) if us is not None]

    def cost_of(*some: GraphBreak) -> float | None:
        costs = [each.cost_us for each in some if each.cost_us is not None]
        return min(most_slowed(side) * sum(costs), *bounds) if costs else None

    def is_costly(*some: GraphBreak) -> bool:
        cost_us, call_us = cost_of(*some), side.wall_us or side.span_us
        return cost_us is not None and call_us is not None and cost_us >= COSTLY * call_us

    longest = sorted(breaks, key=lambda each: -(each.cost_us or 0))
    # What torch's hints name can be switched on, which leaves the others; else an error says where it happens. A value
    # that steers a branch breaks the graph whatever is switched on.
    own = [each for each in breaks if not each.is_torchs]
    # The program's own costliest is named, however many of torch's cost more.
    named = longest[:NAMED]
    if own and all(each.is_torchs for each in named):
        named[-1] = next(each for each in longest if not each.is_torchs)
    removed = [each for each in own if _hints_at_switch(each) and not each.steers_branch]
    hints = " ".join(each.hint or "" for each in removed) if longest[0] in removed else ""
    switches = {variable: "1" for name, variable in SWITCHES.items() if name in hints}
    told = tuple(
        compiling.BreakingLine(
            line=each.line,
            where=each.where,
            reason=each.reason,
            per_step_us=each.per_step_us,
            cost_us=cost_of(each),
            hint=None if each.is_torchs or (each.steers_branch and _hints_at_switch(each)) else each.hint,
            steers_branch=each.steers_branch,
            is_torchs=each.is_torchs,
        )
        for each in named
    )
    statement = compiling.BrokenGraphs(
        side=side.label,
        lines=len(breaks),
        longest=told,
        counted_by_dynamo=side.form.compilation.graph_breaks if side.form and side.form.compilation else 0,
        can_be_switched=bool(switches),
        costly=is_costly(*breaks),
        on_gpu=side.analysis.gpu is not None,
        in_torch=len(breaks) - len(own),
        others_costly=is_costly(*own),
        in_program=bool(side.settings and side.settings.in_program),
    )
    return Finding(
        statement,
        # What a CPU does outside of graphs is work, too, that stays.
        saving_us=cost_of(*(removed if switches else own)) if side.analysis.gpu else None,
        advice=run_again(side.settings, more=("--fullgraph",), switches=switches) if own else None,
        environment=switches if side.settings else {},
    )


def _hints_at_switch(each: GraphBreak) -> bool:
    return any(name in (each.hint or "") for name in SWITCHES)


def find_compiled_again(comparison: Comparison) -> Finding | None:
    """Found when B was compiled again while it was warmed up with the sizes that were timed, with the check that cost
    most. Any size is advised where sizes were what failed."""
    side = comparison.b
    again = [each for each in side.diagnostics.recompiles if each.phase == "warm-up"] if side.diagnostics else []
    if not again or (side.diagnostics and side.diagnostics.warmed_up_at):
        return None
    dearest = max(again, key=lambda each: each.seconds or 0.0)
    of_size = any(isinstance(check_of(each.because[0]), Size) for each in again)
    settings = side.settings if of_size and side.settings and not side.settings.dynamic else None
    statement = compiling.CompiledAgain(
        side=side.label,
        times=len(again),
        function=dearest.function,
        where=dearest.where,
        failed_check=check_of(dearest.because[0]),
        dearest_s=dearest.seconds,
        whole_s=sum(each.seconds or 0.0 for each in again),
    )
    return Finding(statement, advice=run_again(settings, ANY_SIZES), changes=ANY_SIZES if settings else {})


def find_recompiled_during_timing(comparison: Comparison) -> Finding | None:
    """Found when a side's timed calls hold compilation, so that its times are not of compiled code alone. Says which
    calls, which checks failed where torch told, and what it cost in all."""
    side = next((each for each in (comparison.a, comparison.b) if compilations_while_timed(each)), None)
    if side is None:
        return None
    costs = find_compiling_costs(side)
    extra = [cost.extra_us for cost in costs if cost.extra_us is not None]
    checks = (check for cost in costs for frame in cost.frames for check in frame.because)
    any_size = side.settings is not None and side.settings.dynamic is True
    first = []
    for cost in costs[:NAMED]:
        failed = distinct(check_of(check) for frame in cost.frames for check in frame.because[:1])
        first.append(compiling.RecompilingCall(cost.call.call, cost.call.wall_us, failed, cost.call.cuda_graphs))
    advice: Advice | None = None
    if side.settings is not None:
        command = profile_command(side.settings)
        if costs and side.diagnostics and side.diagnostics.warmed_up_at:
            advice = RunAgain(command)
        elif not costs or any_size:
            advice = RunAgain(f"TORCH_LOGS=recompiles {command}")
        else:
            advice = run_again(side.settings, ANY_SIZES)
    statement = compiling.RecompiledDuringTiming(
        side=side.label,
        compilations=compilations_while_timed(side),
        calls=len(costs),
        first=first,
        cost_us=sum(extra) if extra else None,
        warmed_up_at=(side.diagnostics.warmed_up_at if side.diagnostics else None) or {},
        any_size=any_size,
        failed_for_one=any(check_of(check).is_zero_or_one for check in checks),
    )
    return Finding(statement, advice=advice)


def find_remedies(run: Run) -> tuple[Remedy, ...]:
    """For the first reason that nothing was compiled, and for the others what is not said yet."""
    reasons, settings = run.not_compiled or (), run.settings
    found: list[Remedy] = []
    for each in reasons:
        if code := IN_CODE.get(each.code):
            found.append(Remedy(code))
        # A list of other numbers than integers no graph holds.
        variable = CAPTURED.get(each.code) if "non-integer" not in each.reason else None
        if variable and settings.variables.get(variable) != "1":
            command = switched_command(settings, {variable: "1"})
            found.append(Remedy("capture_in_graph", f"{variable}=1", command))
        if each.inside == "loop":
            # Not where a block is in the way: Dynamo has tried each by itself, and skipped it too.
            if run.repeated_parts and settings.scope != "regional" and not each.in_block:
                found.append(Remedy("compile_body", "--scope regional", profile_command(settings, REGIONAL)))
            else:
                found.append(Remedy("compile_body"))
        if each.inside == "context_manager":
            found.append(Remedy("move_context"))
    if all(each.code not in IN_CODE and each.inside is None for each in reasons) and not settings.fullgraph:
        # None of that is known: torch's own error may tell.
        option = "--fullgraph"
        found.append(Remedy("name_line", option, profile_command(settings, more=(option,))))
    return distinct(found)
