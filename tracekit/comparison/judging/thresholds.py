"""How large must a change be to count? Every constant of the judgements, with where it comes from.

What was measured of processes is in benchmarks/processes.json, from which tests derive these figures again.
"""

from tracekit.model.comparison import BUSY_MOVES
from tracekit.statistics.interval import FEWEST

# How much must be measured.

#: Fewer calls than this say nothing about spread: no interval is made of fewer.
FEWEST_CALLS = FEWEST
#: Of fewer control pairs one form has no floor of its own: that of five is nearly their largest difference.
FEWEST_PAIRS = 10
#: So many processes tell what processes have in common; of two Student's t is 9 times as wide as of many.
ENOUGH_PROCESSES = 3

# What a change must exceed, besides its interval and the noise floor.

#: In one process: another start of the program differs by as much (docs/timing.md).
LEAST_IN_ONE_PROCESS = 0.02
#: In several processes, whose spread is in the interval: half of it.
LEAST_IN_SEVERAL = 0.01
#: Between processes of one form, and between forms of different processes: as in one process.
LEAST_BETWEEN_PROCESSES = 0.02
#: Between eager forms of several runs: from here on it is worth a word.
EAGER_DIFFERS = 0.05
#: Beyond a gate's limit by less than the larger of these, a share of the base's time and microseconds, passes: chosen.
SLIGHT_SHARE, SLIGHT_US = 0.005, 5.0
#: The same of memory, in bytes: the smallest segment of torch's CUDA allocator (kSmallBuffer, c10/core/
#: AllocatorConfig.h), which counts a block whole that it does not split. Equal code differed by 1 KiB of 209.7 MiB.
MEMORY_SLACK = 2 * 2**20

#: Outliers are told where they are such a share of the rounds: chosen.
MANY_OUTLIERS = 0.05
#: A clock whose step is a larger share of a call than this is told, and widens the interval: chosen.
COARSE_TICK = 0.01

# What processes differ by.

#: From this share of a call on the GPU waits for the host enough for the speed-up to move with the process. Of 18
#: settings timed two to four times on H200s those idle for 52 to 82 % of a call differed by 6 to 20 %, those idle for 2
#: and 14 % by 1 to 3 %; between 14 and 52 % nothing was measured, and a warning too many costs less.
WAITING_SHARE = 0.2
#: Processes are of two kinds where these are so many standard deviations apart, from the nearest to the nearest: of
#: four that are of one kind 4 in 100 look so, of seven and more fewer than 1 (simulated, normal).
KINDS_APART = 7.0
#: By how much logarithms of speed-ups differ between processes, as a standard deviation, and its degrees of freedom:
#: pooled over sixteen settings that wait for the host, and over two that keep the GPU busy.
NEXT_WAITING, NEXT_BUSY = (0.0575, 44), (0.0134, 3)
#: Added to intervals that know one process of each side: 1.96 standard deviations of the difference of two processes
#: that keep the GPU busy, 0.9 % each, by eager forms of eight works of two sweeps; 93 of 100 pairs keep to it.
PROCESS_FLOOR = 0.024
#: The same of one process that waits for the host: 1.96 standard deviations of 6.9 %, by 22 works of those sweeps.
PROCESS_FLOOR_WAITING = 0.135

# What recordings and machines differ by.

#: Two recordings of one process may agree by chance: GPU time is never taken for more certain than this share.
LEAST_BUSY_MARGIN = 0.005
#: Clocks further apart than busy time moves by from recording to recording are no like conditions.
CLOCKS_DIFFER = BUSY_MOVES
#: A limit that held the GPU back for less of the time moves no median by as much as timing scatters: chosen.
THROTTLED_SHARE = 0.01
#: The same for samples, which are few and taken when a call has just ended.
THROTTLED_SAMPLES = 0.05
#: A recorded step shorter than the timed call by this factor was undisturbed, the timed calls were not: chosen.
SLOWER_THAN_RECORDED = 1.25
