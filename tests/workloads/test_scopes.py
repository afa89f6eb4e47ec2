"""What a scope compiles: named on the real architectures, built without weights; blocks that repeat."""

from contextlib import nullcontext

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("diffusers")

from tests.workloads.builds import nowhere  # noqa: E402
from torch import nn  # noqa: E402

from tracekit.errors import TracekitError  # noqa: E402
from tracekit.model.progress import Silent  # noqa: E402
from tracekit.model.run import Component  # noqa: E402
from tracekit.model.workload import BuiltWorkload, Request  # noqa: E402
from tracekit.workloads import registry, scopes  # noqa: E402
from tracekit.workloads.scopes import all_modules, repeated_blocks  # noqa: E402

MLP = registry.find("mlp")


def refused(workload: str, scope: str) -> TracekitError:
    with pytest.raises(TracekitError) as caught:
        scopes.compile_targets(nowhere(workload), scope)
    return caught.value


EMBEDDERS = ("time_text_embed", "context_embedder", "x_embedder", "norm_out", "proj_out")


@pytest.mark.parametrize(
    ("workload", "scope", "compiled"),
    [
        # The name of the only root may be left out; a full name goes before one without its root.
        ("vit", "vit.embeddings", ["model.vit.embeddings"]),
        ("vit", "model.vit.embeddings", ["model.vit.embeddings"]),
        ("whisper", "model", ["model"]),
        ("whisper", "model.decoder", ["model.model.decoder"]),
        # A star is one name between two points, of what has parameters and is called.
        ("causal-lm", "model.layers.*", [f"model.model.layers.{n}" for n in range(18)]),
        ("flux", "transformer.*", [f"transformer.{name}" for name in EMBEDDERS]),
        ("flux", "transformer.transformer_blocks.3.attn", ["transformer.transformer_blocks.3.attn"]),
        # Each once, and beside the list's own names.
        ("flux", "transformer,vae.decoder,vae.decod?r", ["transformer", "vae.decoder"]),
        ("flux", "text-encoders,vae.decoder", ["text_encoder", "text_encoder_2", "vae.decoder"]),
    ],
)
def test_modules_are_compiled_by_their_names(workload: str, scope: str, compiled: list[str]) -> None:
    targets, modules = scopes.compile_targets(nowhere(workload), scope), all_modules(nowhere(workload).modules)
    assert [(target.component, target.method) for target in targets] == [(name, "forward") for name in compiled]
    assert all(target.module is modules[target.component] for target in targets)


@pytest.mark.parametrize("scope", ["vae", "transformer,vae", "va?", "vae,text_encoder"])
def test_a_part_is_entered_as_the_list_knows_it_to_be_called(scope: str) -> None:
    (vae,) = (each for each in scopes.compile_targets(nowhere("flux"), scope) if each.component == "vae")
    assert vae.method == "decode"


def test_what_cannot_be_compiled_by_itself_is_refused() -> None:
    for scope in ("transformer,transformer.norm_out", "transformer.norm_out,transformer"):
        assert "transformer.norm_out is inside transformer" in str(refused("flux", scope))
    listed = str(refused("flux", "transformer.transformer_blocks"))
    assert "a list of 19 modules and is never called itself: pass --scope" in listed


def test_a_wrong_name_is_met_with_the_parts_there_and_their_share() -> None:
    error = refused("flux", "transformer.transformer_blok.0")
    assert "transformer has no module 'transformer_blok.0'" in str(error)
    assert error.below[0].split() == ["transformer.transformer_blocks.*", "6.5", "B", "38", "%"]
    error = refused("flux", "unet")
    assert "flux has no module 'unet'" in str(error)
    assert error.below[:2] == ("  transformer      11.9 B   71 %", "  text_encoder_2    4.8 B   28 %")
    assert "also: transformer, vae, text-encoders, all, regional" in error.below[4]
    assert error.below[5].endswith("tracekit workloads flux --parts")


@pytest.mark.parametrize(
    ("workload", "asked", "meant"),
    [
        ("flux", "transfomer", "transformer"),
        ("flux", "text_encoder_3", "text_encoder_2"),
        ("flux", "vae.decodr", "vae.decoder"),
        ("vit", "vit.embedings", "model.vit.embeddings"),
        ("vit", "vt.layers", "vit.layers.*"),
        ("vit", "vt.layers.*", "vit.layers.*"),
        ("vit", "vt.layers.3.attention", "vit.layers.*.attention"),
        ("vit", "layers.0", "model.vit.layers.0"),
        ("causal-lm", "layers.*", "model.model.layers.*"),
    ],
)
def test_a_wrong_name_is_met_with_the_nearest_one(workload: str, asked: str, meant: str) -> None:
    assert f"did you mean {meant}?" in str(refused(workload, asked))


def test_what_is_said_of_a_wrong_name_is_short() -> None:
    for info in registry.all_workloads():
        error = refused(info.name, "qqqqqq")
        assert "\n" not in str(error)
        assert 3 <= 1 + len(error.below) <= 12
        assert len({len(line) for line in error.below[:-2] if "%" in line}) == 1


def test_components_say_how_much_of_them_is_compiled() -> None:
    found = scopes.narrowed(nowhere("flux"), "transformer,vae.decoder")
    assert found.settings.scope == "transformer,vae.decoder"
    assert found.components[2:] == (
        Component("transformer", 11_901_408_320, True, 11_901_408_320, ("transformer",)),
        Component("vae", 83_819_683, True, 49_545_475, ("vae.decoder",)),
    )
    assert [(each.compiled, each.compiled_parameters) for each in found.components[:2]] == [(False, 0)] * 2
    shared = scopes.narrowed(nowhere("causal-lm"), "model.norm").components
    assert sum(each.parameters for each in shared) == 2_506_172_416, "what is shared counts once"


def test_components_name_the_modules_by_which_they_are_compiled() -> None:
    every, some, outer = (
        scopes.narrowed(nowhere("vit"), scope).components
        for scope in ("vit.layers.*", "vit.layers.1,vit.layers.2", "vit")
    )
    assert [each.compiled_parts for each in every] == [(), ("model.vit.layers.*",), (), ()]
    assert some[1].compiled_parts == ("model.vit.layers.1", "model.vit.layers.2")
    assert [each.compiled_parameters == each.parameters for each in outer] == [True, True, True, False]
    assert outer[0].compiled_parts == ("model.vit",)


def test_a_scope_of_the_list_keeps_the_list_s_components() -> None:
    info = registry.find("flux")
    built = scopes.build_scoped(
        registry.load_builder(info), info, Request("flux", scope="regional"), "tiny", "cpu", Silent()
    )
    assert [each.name for each in built.components] == ["transformer", "vae", "text-encoders"]
    transformer = built.components[0]
    assert transformer.compiled_parts == ("transformer.transformer_blocks.*", "transformer.single_transformer_blocks.*")
    assert transformer.compiled_parameters is not None
    assert 0.5 * transformer.parameters < transformer.compiled_parameters < transformer.parameters


@pytest.mark.parametrize(
    ("scope", "pretrained", "devices"), [("attention", None, ["meta"]), ("model.0", "somewhere", ["cuda"])]
)
def test_a_wrong_name_is_found_before_any_weight_is_made_but_of_real_ones(
    scope: str, pretrained: str | None, devices: list[str]
) -> None:
    asked: list[str] = []

    def builder(request: Request, size: str, device: str, progress: object) -> BuiltWorkload:
        asked.append(device)
        return nowhere("mlp")

    request = Request("mlp", scope=scope, pretrained=pretrained)
    with nullcontext() if pretrained else pytest.raises(TracekitError, match="'attention'"):
        found = scopes.build_scoped(builder, MLP, request, "full", "cuda", Silent())
        assert [target.component for target in found.targets] == ["model.0"]
    assert asked == devices


class Block(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, 4)


def blocks(model: nn.Module) -> list[str]:
    return [*repeated_blocks([("model", model)])]


def pair(width: int) -> nn.Module:
    return nn.Sequential(Block(width), Block(width))


def test_the_outermost_blocks_that_are_alike_repeat() -> None:
    model = nn.ModuleDict({"first": nn.Linear(4, 4), "blocks": nn.ModuleList(Block(4) for _ in range(3))})
    assert blocks(model) == ["model.blocks.0", "model.blocks.1", "model.blocks.2"]
    assert blocks(nn.ModuleList([Block(4), Block(8)])) == []
    assert blocks(nn.ModuleList([nn.Sequential(nn.Linear(4, 4)), Block(4)])) == [], "of other classes"
    assert blocks(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))) == [], "single layers"
    assert blocks(nn.ModuleList([pair(4), pair(4)])) == ["model.0", "model.1"]
    assert blocks(nn.ModuleList([pair(4), pair(8)])) == ["model.0.0", "model.0.1", "model.1.0", "model.1.1"]


def test_what_diffusers_calls_repeated_goes_first() -> None:
    model = nn.ModuleDict({"a": nn.ModuleList([Block(4), Block(4)]), "b": nn.Bilinear(1, 1, 1)})
    model._repeated_blocks = ["Bilinear"]
    assert blocks(model) == ["model.b"]
    named = scopes.compile_targets(nowhere("sdxl"), "regional")
    assert all(".transformer_blocks." in target.component for target in named)


def test_a_model_without_is_refused_with_its_parts() -> None:
    with pytest.raises(TracekitError, match="convnext at size tiny") as caught:
        scopes.compile_targets(nowhere("convnext", "tiny"), "regional")
    assert "%" in caught.value.below[0]
