"""A recording and another profiler of the same process: neither loses its events, and nothing ends the process. Where
that fails torch may end it with a segmentation fault, so all of it happens in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, schedule

from tracekit.measure import sole_profiler

PROGRAM = """
import json, os, sys, threading, warnings
import torch
torch.cuda.is_available = lambda: False
import tracekit
from torch.autograd.profiler import emit_itt
from torch.profiler import ProfilerActivity, profile, schedule

CPU = {"activities": [ProfilerActivity.CPU]}
answers = {}

def work(times=5):
    for _ in range(times):
        torch.ones(3, requires_grad=True).sin().sum().backward()

def sines(profiler):
    return sum(event.name == "aten::sin" for event in profiler.events())

def recorded(name):
    return os.path.exists(f"{name}/trace.json.gz")

def in_thread(run):
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

def recording(name, **options):
    return tracekit.record(name, force=True, **options)

with profile(**CPU) as theirs:
    with recording("inside"):
        work()
answers["inside"] = [sines(theirs), recorded("inside")]

theirs = profile(**CPU, schedule=schedule(wait=0, warmup=1, active=1, repeat=1))
theirs.start()
with recording("warmed up"):
    work()
theirs.step()
work()
theirs.step()
theirs.stop()
answers["inside a schedule's warm-up"] = [sines(theirs), recorded("warmed up")]

def record_beside():
    with recording("beside"):
        work()

with profile(**CPU) as theirs:
    in_thread(record_beside)
    work()
answers["beside one of another thread"] = [sines(theirs), recorded("beside")]

with recording("around", steps=4, skip=0) as recorder:
    for number in range(3):
        with recorder.step():
            if number == 2:
                with profile(**CPU) as theirs:
                    work()
answers["around one"] = [sines(theirs), recorded("around")]

with recording("itt"), emit_itt():
    work()
answers["around emit_itt"] = recorded("itt")

def profile_beside():
    try:
        with profile(**CPU):
            work()
    except tracekit.errors.TracekitError as error:
        answers["refused"] = str(error)

with recording("alone"):
    in_thread(profile_beside)
    work()
answers["one of another thread inside"] = recorded("alone")

both = threading.Barrier(2)

def record_at_once(name):
    both.wait()
    with recording(name):
        work()
        both.wait()

threads = [threading.Thread(target=record_at_once, args=(f"thread{number}",)) for number in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
answers["two threads at once"] = recorded("thread0") + recorded("thread1")

with recording("outer"):
    try:
        tracekit.profile(torch.sin, torch.ones(3), compile=False, iterations=2, quiet=True, out="profiled")
    except tracekit.errors.TracekitError as error:
        answers["profile inside"] = [str(error), os.path.exists("profiled")]
answers["around a profile"] = recorded("outer")

def model(x):
    with profile(**CPU):
        return x.sin()

try:
    tracekit.profile(model, torch.ones(3), compile=False, iterations=2, quiet=True, out="profiled")
except tracekit.errors.TracekitError as error:
    answers["profiler in what is profiled"] = str(error)

def recorded_model(x):
    with recording("model"):
        return x.sin()

run = tracekit.profile(recorded_model, torch.ones(3), compile=False, iterations=2, quiet=True, out="whole")
answers["record in what is profiled"] = [run.status, recorded("model")]

with recording("forked"):
    child = os.fork()
    if child:
        os.waitpid(child, 0)
if not child:
    os._exit(0)
answers["forked"] = recorded("forked")

abandoned = recording("abandoned")
in_thread(abandoned.__enter__)
abandoned.__exit__(None, None, None)
answers["of a thread that has ended"] = recorded("abandoned")

outside = recording("elsewhere")
outside.__enter__()
in_thread(lambda: outside.__exit__(None, None, None))
answers["left in another thread"] = recorded("elsewhere")
print(json.dumps(answers))
"""


def test_a_recording_and_another_profiler_do_each_other_no_harm(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    answers = json.loads(ended.stdout.splitlines()[-1])
    refused, inside, other = (answers.pop(key) for key in ("refused", "profile inside", "profiler in what is profiled"))
    assert "in another thread" in refused
    assert "another profiler is active" in inside[0] and not inside[1]
    assert "take torch.profiler out" in other
    assert answers == {
        "inside": [5, False],
        "inside a schedule's warm-up": [5, False],
        "beside one of another thread": [5, False],
        "around one": [5, True],
        "around emit_itt": True,
        "one of another thread inside": True,
        "two threads at once": 1,
        "around a profile": True,
        "record in what is profiled": ["complete", False],
        "forked": True,
        "of a thread that has ended": False,
        "left in another thread": False,
    }


@pytest.mark.filterwarnings("ignore:.*Profiler clears events")
@pytest.mark.parametrize("accumulates", [False, True])
def test_one_that_was_stopped_while_it_warmed_up_is_active_no_longer(accumulates: bool) -> None:
    plan = schedule(wait=1, warmup=1, active=1, repeat=0)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, acc_events=accumulates) as theirs:
        # Through a cycle, and into the next one's warm-up.
        for _ in range(4):
            theirs.step()
        assert sole_profiler.is_active()
    # An older torch's that accumulates does not tell.
    assert not sole_profiler.is_active() or (accumulates and theirs.step_rec_fn is not None)


#: A thread that records again and again, and one that profiles meanwhile.
TWO_THREADS = """
import threading
import torch
torch.cuda.is_available = lambda: False
import tracekit
from tracekit.errors import TracekitError
from torch.profiler import ProfilerActivity, profile

recorded = []

def record():
    for _ in range(20):
        with tracekit.record("a", force=True) as recorder:
            torch.ones(3).sin()
        recorded.append(recorder.is_published)

def profile_meanwhile():
    while recording.is_alive():
        try:
            with profile(activities=[ProfilerActivity.CPU]):
                torch.ones(3).sin()
        except TracekitError:
            pass

recording = threading.Thread(target=record)
profiling = threading.Thread(target=profile_meanwhile)
for thread in (recording, profiling):
    thread.start()
for thread in (recording, profiling):
    thread.join()
print(len(recorded))
"""


def test_a_profiler_that_begins_while_a_recording_starts_or_stops_ends_no_process(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", TWO_THREADS]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout.split()[-1:]) == (0, ["20"]), ended.stderr


def test_a_torch_without_the_names_that_are_asked_for_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    with sole_profiler.watched_starts(lambda: begun.append("another")), profile(activities=[ProfilerActivity.CPU]):
        assert sole_profiler.is_active() and sole_profiler.is_active_here()
        assert begun, "it was told before it was prepared"
        monkeypatch.delattr(torch.autograd, "_profiler_enabled")
        assert sole_profiler.is_active() and sole_profiler.is_active_here() is None
        monkeypatch.delattr(torch.autograd.profiler, "_is_profiler_enabled")
        assert sole_profiler.is_active(), "the profiler in memory says so"
        monkeypatch.undo()
    assert not sole_profiler.is_active()
    for module, name in sole_profiler.STARTS:
        monkeypatch.delattr(sys.modules[module], name)
    with sole_profiler.watched_starts(lambda: begun.append("another")):
        assert not hasattr(torch.autograd.profiler, "_prepare_profiler")
