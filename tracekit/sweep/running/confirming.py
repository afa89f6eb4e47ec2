"""Which best modes of a sweep are to be measured again, each in a process that had no part in choosing it?"""

from collections import Counter

from msgspec.structs import replace

from tracekit.sweep.cells import CONFIRMING
from tracekit.sweep.figures import COMPETING
from tracekit.sweep.reading.works import read_sweep
from tracekit.sweep.running.folder import SweepFolder
from tracekit.sweep.running.sweeping import SweepPlan, ToDo, find_left, why_to_run


def find_unconfirmed(plan: SweepPlan, folder: SweepFolder) -> tuple[ToDo, ...]:
    """The best of each work of the plan that has all its cells, where enough modes compete. What was measured again
    stays, unless another mode is the best now: nothing is chosen by it."""
    asked = folder.asked()
    cells = {cell.key: cell for cell in (*plan.cells, *(asked.cells if asked else ()))}
    modes = Counter(cell.work for cell in cells.values() if cell.form == "compiled")
    works = {cell.work for cell in plan.cells if modes[cell.work] >= COMPETING}
    if not works:
        return ()
    # A cell that failed takes no part: it need not be tried again first. In how many processes the folder knows.
    every = tuple(cell for cell in cells.values() if cell.work in works)
    whole = replace(plan, cells=every, retry_failed=False, processes=None)
    works -= {each.cell.work for each in find_left(whole, folder)}
    results = [each for each in folder.load_all() if each.cell.work in works]
    sweep = read_sweep(folder.name, asked, results, None, 1)
    since = asked.anew_since if asked else {}
    left: list[ToDo] = []
    for key in dict.fromkeys(best.to_confirm for work in sweep.works for best in work.best):
        found = folder.load(key, CONFIRMING) if key else None
        if key and (why := why_to_run(plan, found, since.get(key))):
            left.append(ToDo(cells[key], len(left) + 1, found.started if found else None, why, CONFIRMING))
    return tuple(left)
