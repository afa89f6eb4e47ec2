"""How many examples a fuzzer tries: as many as it asks for in each run of the tests, many more under `make fuzz`."""

from __future__ import annotations

import os

from hypothesis import settings

#: Examples of the profiles `ci` and `fuzz`, of which hypothesis takes the one that HYPOTHESIS_PROFILE names.
USUAL_EXAMPLES, FUZZ_EXAMPLES = 100, 3000


def register_profiles() -> None:
    settings.register_profile("ci", max_examples=USUAL_EXAMPLES)
    settings.register_profile("fuzz", max_examples=FUZZ_EXAMPLES, deadline=None, print_blob=True)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def fuzzed(examples: int) -> settings:
    """Settings of a fuzzer: the same examples in every run of the tests, and 30 times as many, new ones each time,
    under the profile `fuzz`."""
    factor = settings().max_examples // USUAL_EXAMPLES
    return settings(max_examples=examples * factor, deadline=None, derandomize=factor == 1)
