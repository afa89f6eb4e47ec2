"""The look before a sweep: what is asked, and what comes of each answer."""

from pathlib import Path

import pytest
from tests.sweep.sweeps import Children, compiled_cell, eager_cell, make_environment, make_failure, make_result
from tests.workloads.configurations import save

from tracekit.errors import TheirCodeError, TracekitError
from tracekit.measure.processes import WORD, Ended
from tracekit.model.progress import Silent
from tracekit.model.workload import Request
from tracekit.sweep.cells import CheckAnswer, CheckJob
from tracekit.sweep.running import requirements
from tracekit.sweep.running.requirements import check_buildable, check_first


def test_each_work_and_scope_is_asked_about_once_and_every_size_of_a_configuration(children: Children) -> None:
    cells = [eager_cell(), compiled_cell(), compiled_cell(mode="reduce-overhead"), compiled_cell(scope="regional")]
    cells += [eager_cell(batch_size=4), eager_cell(dtype="float16")]
    assert check_first(cells, Silent()) is None
    assert check_first([eager_cell("hf:a/b", seq_length=length) for length in (8, 16)], Silent()) is None
    assert check_first([], Silent()) is None
    job, other = children.checked
    assert [request.scope for request in job.requests] == ["model", "regional"]
    assert [request.seq_length for request in other.requests] == [8, 16]
    assert (job.compiled, other.compiled) == (True, False)


def test_an_error_is_raised_as_it_was(children: Children) -> None:
    children.found = CheckAnswer("vit needs the package torch", ("a line",))
    with pytest.raises(TracekitError, match="needs the package torch") as caught:
        check_first([eager_cell()], Silent())
    assert caught.value.below == ("a line",)
    children.found = CheckAnswer("importing it raised", traceback="Traceback")
    with pytest.raises(TheirCodeError) as theirs:
        check_first([eager_cell()], Silent())
    assert theirs.value.traceback == "Traceback"


def test_a_process_that_gives_no_answer_stops_nothing(children: Children) -> None:
    children.ends = [Ended(-11, None, ("chatter", "Segmentation fault", ""))]
    said = check_first([eager_cell()], Silent())
    assert said is not None
    assert "killed by SIGSEGV; it printed last: chatter / Segmentation fault" in said


def test_the_process_tells_the_first_thing_that_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def look(request: Request) -> None:
        if request.workload == "beit":
            raise TracekitError("beit is not here", ("below",))

    monkeypatch.setattr(requirements, "check_buildable", look)
    word = tmp_path / WORD
    found = requirements.check(CheckJob((Request("vit"), Request("beit"), Request("bert")), False), word)
    assert found == CheckAnswer("beit is not here", ("below",))
    assert word.read_text() == "beit"
    assert requirements.check(CheckJob((Request("vit"),), False), word) == CheckAnswer()


def test_compilers_are_looked_for_where_anything_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(requirements, "check_buildable", lambda _: None)
    with torch._dynamo.config.patch(disable=True):
        found = requirements.check(CheckJob((), True), tmp_path / WORD)
    assert found.error is not None and "TORCH_COMPILE_DISABLE" in found.error
    assert requirements.check(CheckJob((), False), tmp_path / WORD) == CheckAnswer()


def test_what_gpus_the_folder_was_measured_on_is_told_unless_some_cell_had_none(children: Children) -> None:
    on_gpu, failed = make_result(eager_cell()), make_failure(compiled_cell())
    on_cpu = make_result(compiled_cell(), environment=make_environment(gpu=None))
    for there in ([on_gpu, failed], [on_gpu, on_cpu], [failed], []):
        check_first([eager_cell()], Silent(), there=there)
    assert [job.gpus for job in children.checked] == [("NVIDIA H200",), (), (), ()]


def test_cells_of_a_gpu_are_not_joined_by_cells_of_a_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(requirements, "check_buildable", lambda _: None)
    asked = CheckJob((Request("vit"),), False, ("NVIDIA H200",))
    monkeypatch.setattr("tracekit.measure.device.pick_device", lambda: "cpu")
    error = requirements.check(asked, tmp_path / WORD).error
    assert error is not None and "NVIDIA H200" in error
    monkeypatch.setattr("tracekit.measure.device.pick_device", lambda: "cuda")
    assert requirements.check(asked, tmp_path / WORD) == CheckAnswer()


def test_a_real_look_says_what_is_wrong_in_its_own_process() -> None:
    pytest.importorskip("torch")
    with pytest.raises(TracekitError, match="'nonsense'"):
        check_first([compiled_cell("mlp", scope="nonsense")], Silent())


@pytest.fixture
def own_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_model.py").write_text("def build(layers: int = 2):\n    raise AssertionError('nobody builds it')\n")


@pytest.mark.usefixtures("own_model")
def test_what_can_be_built_passes(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    configuration = save("BertForMaskedLM", tmp_path)
    for request in (
        Request("mlp"),
        Request("mlp", scope="all"),
        Request(configuration, seq_length=8, scope="model.bert.encoder"),
        Request("my_model.py:build", options=("layers=3",)),
    ):
        check_buildable(request)


@pytest.mark.usefixtures("own_model")
@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request("mlp", scope="nonsense"), "'nonsense'"),
        (Request("hf:nobody/has-this"), "pass --download to fetch it"),
        (Request("hf:bert", seq_length=8, scope="bert.encodr"), r"did you mean model\.bert\.encoder"),
        (Request("my_model.py:build", options=("layerz=3",)), "did you mean layers"),
        (Request("my_model.py:make"), "no function 'make'"),
    ],
)
def test_what_keeps_it_from_being_built_is_an_error(request_: Request, message: str) -> None:
    pytest.importorskip("transformers")
    if request_.workload == "hf:bert":
        save("BertForMaskedLM", Path("bert"))
    with pytest.raises(TracekitError, match=message):
        check_buildable(request_)
