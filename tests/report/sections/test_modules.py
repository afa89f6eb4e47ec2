from tracekit.model.groups import ModuleTime
from tracekit.report.sections.modules import main_child


def module(path: str, a_us: float, b_us: float, *children: ModuleTime) -> ModuleTime:
    return ModuleTime(path, a_us, b_us, b_us - a_us, 4.0, 2.0, (), children)


def test_the_module_that_makes_most_of_a_change_is_told_and_not_one_that_makes_all_of_it():
    def told(attention_us: float) -> str | None:
        rest = module("layers.*.mlp", 20.0, 15.0)
        whole = module("layers.*", 120.0, 15.0 + attention_us, module("layers.*.attn", 100.0, attention_us), rest)
        child = main_child(whole)
        return child.path if child else None

    assert told(80.0) == "layers.*.attn"
    # Half of it, and nearly all.
    assert (told(95.0), told(1.0)) == (None, None)
    assert main_child(module("layers.*", 9.0, 3.0)) is None
