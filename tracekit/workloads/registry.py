"""The list of workloads."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable

from tracekit.errors import TracekitError
from tracekit.model.progress import Progress
from tracekit.model.workload import BuiltWorkload, Request, WorkloadInfo
from tracekit.workloads.beit_info import BEIT
from tracekit.workloads.bert_info import BERT
from tracekit.workloads.causal_lm_info import CAUSAL_LM
from tracekit.workloads.conditional_detr_info import CONDITIONAL_DETR
from tracekit.workloads.convnext_info import CONVNEXT
from tracekit.workloads.deeplabv3_mobilenet_info import DEEPLABV3_MOBILENET
from tracekit.workloads.detr_info import DETR_50
from tracekit.workloads.detr_resnet_101_info import DETR_101
from tracekit.workloads.flux_info import FLUX
from tracekit.workloads.mask2former_info import MASK2FORMER
from tracekit.workloads.maskformer_info import MASKFORMER
from tracekit.workloads.mlp_info import MLP
from tracekit.workloads.owlvit_info import OWLVIT
from tracekit.workloads.qwen_vl_info import QWEN_VL
from tracekit.workloads.resnet_info import RESNET
from tracekit.workloads.sdxl_info import SDXL
from tracekit.workloads.segformer_info import SEGFORMER
from tracekit.workloads.vit_info import VIT
from tracekit.workloads.whisper_info import WHISPER

#: `build(request, size, device, progress)`, in a workload's own file.
Builder = Callable[[Request, str, str, Progress], BuiltWorkload]

WORKLOADS: tuple[WorkloadInfo, ...] = (
    FLUX,
    QWEN_VL,
    CAUSAL_LM,
    VIT,
    BEIT,
    CONVNEXT,
    RESNET,
    SEGFORMER,
    MASK2FORMER,
    MASKFORMER,
    DEEPLABV3_MOBILENET,
    OWLVIT,
    DETR_50,
    DETR_101,
    CONDITIONAL_DETR,
    SDXL,
    BERT,
    WHISPER,
    MLP,
)


def all_workloads() -> tuple[WorkloadInfo, ...]:
    """Every workload, in the order they are listed."""
    return WORKLOADS


def find(name: str) -> WorkloadInfo:
    """The workload of that name. Raises TracekitError with the nearest name."""
    by_name = {workload.name: workload for workload in WORKLOADS}
    if name in by_name:
        return by_name[name]
    near = difflib.get_close_matches(name.lower(), by_name, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"there is {', '.join(by_name)}"
    raise TracekitError(f"no workload is called {name!r}: {hint} (`tracekit workloads` lists them)")


def load_builder(info: WorkloadInfo) -> Builder:
    """The workload's `build`. Raises TracekitError when its packages are missing."""
    try:
        module = importlib.import_module(info.module)
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("tracekit"):
            raise
        raise TracekitError(
            f"{info.name} needs the package {error.name}, which is not installed: "
            f"pip install -c constraints.txt '.[{info.extra}]' in tracekit's checkout"
        ) from None
    builder: Builder = module.build
    return builder


def check_scope(info: WorkloadInfo, scope: str | None) -> str:
    """The scope to compile: the workload's default when none is asked for. Names of modules can only be checked when
    there is a model to look at (`scopes.py`).

    Raises TracekitError for what is no list of names.
    """
    if scope is None:
        return next(iter(info.scopes))
    names = [name.strip() for name in scope.split(",")]
    if not all(names):
        raise TracekitError(f"--scope {scope!r} names nothing at one place: write names with commas between them")
    return ",".join(dict.fromkeys(names))
