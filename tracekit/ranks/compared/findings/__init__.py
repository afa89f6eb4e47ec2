"""What a reader should know or do about ranks that communicate, a file each."""

from tracekit.comparison.findings import Finder
from tracekit.ranks.compared.findings.communication_limits import find_communication_limits
from tracekit.ranks.compared.findings.ddp_buckets import find_ddp_buckets
from tracekit.ranks.compared.findings.fewer_gathers import find_fewer_gathers
from tracekit.ranks.compared.findings.less_overlap import find_less_overlap
from tracekit.ranks.compared.findings.moved_collectives import find_moved_collectives

#: Of equally grave ones that promise the same the upper comes first.
FINDERS: tuple[Finder, ...] = (
    find_fewer_gathers,
    find_ddp_buckets,
    find_less_overlap,
    find_communication_limits,
    find_moved_collectives,
)
