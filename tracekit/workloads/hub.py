"""Any model of transformers by its configuration: `hf:ORG/NAME`, `hf:FOLDER`. What it takes is made here."""

import copy
import inspect
import json
from collections.abc import Iterable
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
from tracekit.workloads.configured import Configured, Drawn, build_configured, cannot_make, look_into_configuration
from tracekit.workloads.hub_files import find_file, find_optional
from tracekit.workloads.inputs import draw_images
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
#: Tokens where nobody says how many: a prompt, a sentence, what a decoder has written of its answer.
PROMPT_TOKENS = 512
SENTENCE_TOKENS = 128
ANSWER_TOKENS = 64
#: Images where neither the configuration nor a preprocessor's says how large: as DETR's publishers resize 4:3, others.
DETECTION_PIXELS = (800, 1066)
PIXELS = (224, 224)
#: Five seconds of sound.
WAVE_SAMPLES = 5 * 16_000
#: Token ids that mean something to a model and are drawn by no chance.
SPECIAL = ("pad", "bos", "eos", "decoder_start", "image", "video", "audio", "boi", "eoi", "vision_start", "vision_end")
#: Models of text and images that take one of each at once.
PAIRING = ("MODEL_FOR_ZERO_SHOT_IMAGE_CLASSIFICATION_MAPPING", "MODEL_FOR_ZERO_SHOT_OBJECT_DETECTION_MAPPING")


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


def draw_inputs(kind: Any, config: Any, asked: Request, published_pixels: object) -> Drawn:
    """The arguments of one forward of `kind`, the same for the same seed on every device. `published_pixels` are what
    the repository's own preprocessor says of an image's size, if anything. Raises TracekitError for what cannot be made
    from a configuration, and for sizes of what the model does not take."""
    takes = inspect.signature(kind.forward).parameters
    wanted = _wanted(kind, config, takes)
    pixels = _pixels(kind, config, asked, published_pixels) if "pixel_values" in wanted else None
    tokens = _tokens(kind, config, asked.seq_length) if "input_ids" in wanted else None
    if (asked.height or asked.width) and pixels is None:
        raise TracekitError(f"{kind.__name__} takes no images: leave --height and --width out")
    if asked.seq_length and tokens is None:
        raise TracekitError(f"{kind.__name__} takes no text: leave --seq-length out")
    made: dict[str, torch.Tensor] = {}
    if tokens is not None:
        text = config.get_text_config()
        made["input_ids"] = _draw_ids(config, text, asked, tokens)
        # Models that sum a text up where it ends look for its end.
        if not getattr(text, "is_decoder", False) and isinstance(eos := getattr(text, "eos_token_id", None), int):
            made["input_ids"][:, -1] = min(eos, text.vocab_size - 1)
        if "attention_mask" in takes:
            made["attention_mask"] = torch.ones_like(made["input_ids"])
    if pixels is not None:
        channels, frames = _figure(config, "num_channels", 3), getattr(config, "num_frames", None)
        images = draw_images(asked.batch_size * (frames or 1), *pixels, asked.seed)
        if channels != images.shape[1]:
            images = images.mean(1, keepdim=True).expand(-1, channels, -1, -1)
        made["pixel_values"] = images.unflatten(0, (asked.batch_size, frames)) if frames else images
    for name in ("input_features", "input_values"):
        if name in wanted:
            generator = torch.Generator().manual_seed(asked.seed)
            made[name] = torch.randn(asked.batch_size, *_sound_shape(name, kind, config), generator=generator)
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in takes:
        text = config.get_text_config(decoder=True)
        most = getattr(text, "max_target_positions", 0) or getattr(text, "max_position_embeddings", 0) or 0
        ids = _draw_ids(config, text, asked, min(ANSWER_TOKENS, most) if most > 0 else ANSWER_TOKENS)
        ids[:, 0] = _first((getattr(part, "decoder_start_token_id", None) for part in (config, text)), 0)
        made["decoder_input_ids"] = ids
    height, width = pixels or (None, None)
    return Drawn(made, height, width, tokens)


def _wanted(kind: Any, config: Any, takes: Any) -> set[str]:
    main = getattr(kind, "main_input_name", "input_ids")
    wanted = {main} if isinstance(main, str) else set(main)
    needed = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    wanted |= {name for name, each in takes.items() if each.default is each.empty and each.kind in needed} - {"self"}
    if "pixel_values" in takes and any(_is_for(kind, config, mapping) for mapping in PAIRING):
        wanted |= {"input_ids", "pixel_values"}
    wanted -= {"attention_mask", "decoder_input_ids"}
    unknown = wanted - {"input_ids", "pixel_values", "input_features", "input_values"}
    if unknown:
        raise cannot_make(kind, f"it takes {', '.join(sorted(unknown))}")
    return wanted


def _figure(config: Any, name: str, default: Any = None) -> Any:
    """A figure of the configuration, or of the first of its parts that has it: of many models it is one level down."""
    names = ("vision_config", "encoder", "backbone_config", "audio_config")
    parts = (config, config.get_text_config(), *(getattr(config, each, None) for each in names))
    return _first((getattr(part, name, None) for part in parts), default)


def _first(values: Iterable[Any], default: Any = None) -> Any:
    return next((value for value in values if value is not None), default)


def _tokens(kind: Any, config: Any, asked: int | None) -> int:
    text = config.get_text_config()
    # Some say -1 where there is no end.
    positions = (getattr(text, name, None) for name in ("max_position_embeddings", "n_positions"))
    most = next((found for found in positions if isinstance(found, int) and found > 0), None)
    if asked and most and asked > most:
        raise TracekitError(f"{kind.__name__} has {most} positions: --seq-length {asked} is too long")
    causal = kind.can_generate() and not getattr(config, "is_encoder_decoder", False)
    default = PROMPT_TOKENS if causal else SENTENCE_TOKENS
    return asked or min(default, most or default)


def _draw_ids(config: Any, text: Any, asked: Request, tokens: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(asked.seed)
    names = [f"{name}_token_{end}" for name in SPECIAL for end in ("id", "index")]
    values = (getattr(part, name, None) for part in (config, text) for name in names)
    special = {each for each in values if isinstance(each, int)}
    plain = torch.tensor([each for each in range(text.vocab_size) if each not in special] or [0])
    return plain[torch.randint(len(plain), (asked.batch_size, tokens), generator=generator)]


def _pixels(kind: Any, config: Any, asked: Request, published: object) -> tuple[int, int]:
    image = _figure(config, "image_size")
    pair = isinstance(image, list | tuple) and len(image) == 2
    size = _sides(published) or (tuple(image) if pair else _sides(image))
    if size is None:
        size = DETECTION_PIXELS if _is_for(kind, config, "MODEL_FOR_OBJECT_DETECTION_MAPPING") else PIXELS
    return asked.height or size[0], asked.width or size[1]


def _sides(said: Any) -> tuple[int, int] | None:
    match said:
        case int(side):
            return side, side
        case {"height": int(height), "width": int(width)}:
            return height, width
        case {"shortest_edge": int(short)}:
            # Of a picture of 4:3; of a square one where no longer edge is allowed for.
            return short, min(short * 4 // 3, said.get("longest_edge") or short)
    return None


def _is_for(kind: Any, config: Any, mapping: str) -> bool:
    """Whether transformers takes the class for this task of such a model."""
    known = getattr(transformers, mapping, {})
    return type(config) in known and known[type(config)] is kind


def _sound_shape(name: str, kind: Any, config: Any) -> tuple[int, ...]:
    bins, positions = getattr(config, "num_mel_bins", None), getattr(config, "max_source_positions", None)
    if name == "input_features":
        if bins is None or positions is None:
            raise cannot_make(kind, "its configuration does not say how many frames its spectra have")
        # Whisper's convolutions make one position of two frames.
        return bins, 2 * positions
    if hasattr(config, "conv_stride"):
        return (WAVE_SAMPLES,)
    if hasattr(config, "num_mel_bins") and hasattr(config, "max_length"):
        return config.max_length, config.num_mel_bins
    raise cannot_make(kind, "its configuration does not define its audio input")


look_into = partial(look_into_configuration, _read)
build = partial(build_configured, _read)
