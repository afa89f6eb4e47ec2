from __future__ import annotations

from tracekit.comparison.commands import profile_command
from tracekit.model.generation import Generation

from ..sides import make_settings


def test_the_next_command_generates_as_this_run_did():
    whole = make_settings(workload="qwen2.5-vl", generation=Generation("generate", 16, "static", fast_processor=True))
    command = profile_command(whole, {"mode": "reduce-overhead"})
    assert "--phase generate --cache static --max-new-tokens 16 --use-fast" in command
    one = make_settings(workload="qwen2.5-vl", generation=Generation("decode", None, "dynamic", fast_processor=False))
    command = profile_command(one, {"mode": "reduce-overhead"})
    assert "--phase decode --cache dynamic --no-use-fast" in command
    assert "--max-new-tokens" not in command


def test_what_generates_nothing_is_asked_for_nothing_of_the_kind():
    command = profile_command(make_settings(), {"mode": "default"})
    assert "--phase" not in command and "--use-fast" not in command
