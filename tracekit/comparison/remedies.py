"""What may let torch.compile compile what it compiled nothing of?"""

from tracekit.comparison.commands import profile_command, switched_command
from tracekit.comparison.findings.compilation import SWITCHES
from tracekit.model.compilation import NotCompiledCode
from tracekit.model.note import distinct
from tracekit.model.run import Run
from tracekit.model.single_run import Remedy, RemedyCode

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
