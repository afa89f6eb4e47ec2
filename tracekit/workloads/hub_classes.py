"""Which class of transformers is a configuration's model?"""

from __future__ import annotations

from typing import Any

import transformers

from tracekit.errors import TracekitError

#: Where the configuration names no class: the first of these that knows one for it.
MAPPINGS = (
    "MODEL_FOR_CAUSAL_LM_MAPPING",
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING",
    "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING",
    "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING",
    "MODEL_FOR_OBJECT_DETECTION_MAPPING",
    "MODEL_FOR_UNIVERSAL_SEGMENTATION_MAPPING",
    "MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING",
    "MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING",
    "MODEL_FOR_MASKED_LM_MAPPING",
    "MODEL_MAPPING",
)


def choose_class(config: Any, source: str) -> Any:
    """The class the configuration names, or else the one transformers has for a task of such a model.

    Raises TracekitError where it has none.
    """
    named = getattr(config, "architectures", None) or ()
    for name in named:
        kind = getattr(transformers, name, None)
        if kind is not None:
            return kind
    if named:
        raise TracekitError(
            f"{source} is a {' or '.join(named)}, which transformers {transformers.__version__} has not: a newer one"
            " may, or its code comes with the repository, and tracekit runs none of that; profile it as your own model"
            " instead: tracekit profile my_model.py:build"
        )
    for mapping in MAPPINGS:
        known = getattr(transformers, mapping, {})
        if type(config) in known:
            found = known[type(config)]
            return found[0] if isinstance(found, tuple) else found
    raise TracekitError(
        f"transformers {transformers.__version__} has no model for a configuration of type {config.model_type}: add its"
        " class's name to the configuration's architectures, or profile it as your own: my_model.py:build"
    )
