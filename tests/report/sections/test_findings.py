from msgspec.structs import replace
from tests.report.conftest import timed_comparison
from tests.report.showing import comparison_page

from tracekit.model.comparison import Finding
from tracekit.report.sections.findings import STATED, finding_texts, listed
from tracekit.statements.findings.waiting import LaunchBound

LAUNCHES = Finding(LaunchBound(wall_us=1000.0, idle_us=600.0, host_share=0.6, launching_share=0.5), 250.0)


def test_what_only_states_figures_is_listed_nowhere_but_in_the_json():
    comparison = timed_comparison()
    stated = [each.code for each in comparison.findings if each.code in STATED]
    assert stated
    assert [each.code for each in listed((*comparison.findings, LAUNCHES)) if each.code in STATED] == []
    assert not any(f'id="finding-{code}"' in comparison_page(comparison) for code in stated)


def test_a_saving_is_told_as_a_share_of_the_call_at_most_all_of_it():
    shares = [finding_texts([LAUNCHES], "per step", call_us=us).findings[0].share for us in (1000.0, 100.0, None)]
    assert shares == [0.25, 1.0, None]
    page = comparison_page(replace(timed_comparison(), findings=(LAUNCHES,)))
    assert page.count('<i class="share"') == 1


def test_findings_of_several_lists_have_addresses_of_their_own():
    (one,), (other,) = (finding_texts([LAUNCHES], place=place).findings for place in ("", "1-"))
    assert (one.id, other.id) == ("finding-launch_bound", "finding-1-launch_bound")
