"""Any model of transformers by its configuration: `hf:ORG/NAME`, `hf:FOLDER`."""

import copy
import json
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from huggingface_hub import errors as hub
from transformers import AutoConfig

from tracekit.errors import TracekitError
from tracekit.model.workload import Request
from tracekit.workloads.building import load_pretrained
from tracekit.workloads.configured import Configured, build_configured, look_into_configuration
from tracekit.workloads.hub_files import find_file, find_optional
from tracekit.workloads.hub_inputs import draw_inputs
from tracekit.workloads.unlisted import may_download, source_of

#: What transformers raises for a configuration it cannot make sense of.
MISREAD = (OSError, ValueError, TypeError, KeyError, getattr(hub, "StrictDataclassError", ValueError))
#: Where the configuration names no class: the first of these that knows one for it.
TASKS = (
    "CAUSAL_LM SEQ_TO_SEQ_CAUSAL_LM SPEECH_SEQ_2_SEQ IMAGE_CLASSIFICATION OBJECT_DETECTION UNIVERSAL_SEGMENTATION"
    " SEMANTIC_SEGMENTATION AUDIO_CLASSIFICATION MASKED_LM"
).split()
MAPPINGS = (*(f"MODEL_FOR_{task}_MAPPING" for task in TASKS), "MODEL_MAPPING")
#: How many layers of each stack the small size keeps.
LAYERS = 2
#: How transformers' configurations count the layers of a stack.
COUNTS = "num_hidden_layers num_layers num_decoder_layers encoder_layers decoder_layers n_layer n_layers".split()


def _read(request: Request, size: str) -> Configured | None:
    source, download = source_of(request.workload), may_download(request)
    config = _config(find_file(source, ("config.json", "model_index.json"), download=download), source)
    kind = choose_class(config, source)
    remarks = _as_it_is_run(config)
    if kind.can_generate() and getattr(config, "vision_config", None) and kind.main_input_name == "input_ids":
        remarks += ("The model also takes images; here it reads only text.",)
    if size == "small":
        config = shortened(config)
        if config is None:
            return None
        remarks += (f"Every stack is cut to {LAYERS} layers at full width: times are not those of the whole model.",)
    preprocessor = find_optional(source, "preprocessor_config.json", download=download)
    said = json.loads(preprocessor.read_text()) if preprocessor else {}
    # What the repository's own preprocessor hands over.
    pixels = (said.get("crop_size") if said.get("do_center_crop") else None) or said.get("size")

    def load(weights: str, dtype: torch.dtype) -> Any:
        model = load_pretrained(kind, weights, dtype)
        _as_it_is_run(model.config)
        return model

    return Configured(
        kind=kind,
        make=lambda: kind(config),
        load=load,
        draw=lambda asked: draw_inputs(kind, config, asked, pixels),
        remarks=remarks,
    )


def _config(path: Path, source: str) -> Any:
    if b'"_class_name"' in path.read_bytes():
        raise TracekitError(f"{source} is a model of diffusers, not of transformers: pass diffusers:{source}")
    try:
        # A prompt whether to run a repository's code would hang; none is run.
        return AutoConfig.from_pretrained(path, trust_remote_code=False)
    except MISREAD as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise TracekitError(
            f"transformers cannot read the configuration of {source} ({path.name}): {said[0].rstrip('.')[:300]};"
            " install a newer transformers, or profile your own model: tracekit profile my_model.py:build"
        ) from None


def _as_it_is_run(config: Any) -> tuple[str, ...]:
    """Changes what would download, or keep what is never read again; says what else was changed."""
    for part in _configurations(config):
        if hasattr(part, "use_cache"):
            part.use_cache = False
        if getattr(part, "use_pretrained_backbone", False):
            part.use_pretrained_backbone = False
    if getattr(config, "quantization_config", None) is None:
        return ()
    del config.quantization_config
    return ("The configuration asks for quantised weights; these are not quantised.",)


def _configurations(config: Any) -> list[Any]:
    """The configuration, and those inside it."""
    return [each for each in (config, *vars(config).values()) if hasattr(each, "model_type")]


def choose_class(config: Any, source: str) -> Any:
    """The class the configuration names, or else the one transformers has for a task of such a model."""
    named = getattr(config, "architectures", None) or ()
    for name in named:
        kind = getattr(transformers, name, None)
        if kind is not None:
            return kind
    if named:
        raise TracekitError(
            f"{source} is a {' or '.join(named)}, which transformers {transformers.__version__} lacks: install a"
            " newer one, or, as tracekit runs no code of repositories, profile your own model: tracekit profile"
            " my_model.py:build"
        )
    for mapping in MAPPINGS:
        known = getattr(transformers, mapping, {})
        if type(config) in known:
            found = known[type(config)]
            return found[0] if isinstance(found, tuple) else found
    raise TracekitError(
        f"transformers {transformers.__version__} has no model of type {config.model_type}: add its class name to the"
        " configuration's architectures, or profile your own model: my_model.py:build"
    )


def shortened(config: Any) -> Any | None:
    """A copy with two layers in every stack that counts them in one number; None where nothing would be left out."""
    short, changed = copy.deepcopy(config), False
    for part in _configurations(short):
        figures = vars(part)
        counts = [name for name in COUNTS if isinstance(figures.get(name), int) and figures[name] > LAYERS]
        for name in counts:
            setattr(part, name, LAYERS)
        if counts and isinstance(figures.get("layer_types"), list):
            part.layer_types = figures["layer_types"][:LAYERS]
        changed = changed or bool(counts)
    return short if changed else None


look_into = partial(look_into_configuration, _read)
build = partial(build_configured, _read)
