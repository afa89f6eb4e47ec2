"""What to try where compiling a whole model costs it a faster attention kernel.

Measured on an H200, torch 2.11 and transformers 5.17, batch 1, bfloat16: compiled whole, both models make an attention
mask that eager code skips (transformers does not look into masks while it is traced, before torch 2.14). ViT-B's
attention then becomes products and a softmax, 814 us of GPU time a call; with its layers compiled one by one it keeps
cuDNN's kernel, 644 us, and the call, which waits for the host, takes 5.25 ms instead of 4.58. Four layers of gemma: 144
us of attention whole, 65 us layer by layer, as eager.
"""

from __future__ import annotations

from tracekit.comparison.commands import can_be_regional, profile_command
from tracekit.model.action import Action
from tracekit.model.comparison import Side


def scope_changes(side: Side) -> dict[str, str]:
    """The scope that compiles the layers one by one, where the model has such."""
    return {"scope": "regional"} if can_be_regional(side) else {}


def layer_by_layer(side: Side) -> Action | None:
    """To compile the layers one by one, by a command or in the program; None where that is done already."""
    changes = scope_changes(side)
    if side.settings and changes:
        return Action("run_again", profile_command(side.settings, changes))
    return None if side.settings and side.settings.scope == "regional" else Action("compile_layers")
