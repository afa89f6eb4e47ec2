"""What a GPU or CPU did in one step, activity by activity, which operator asked for it, and how much work that was."""

from typing import Literal

from msgspec import Struct

#: Of recordings with more activities, or outermost operators, none is looked at by itself: matching takes a minute
#: and a gigabyte for each 500,000.
MOST_ACTIVITIES = 500_000


class Peak(Struct, frozen=True):
    """What the maker publishes for a device: memory bandwidth, and dense arithmetic by type of the inputs. None: the
    device has no such units.

    `float32_precision` is torch's setting for products of float32 on it (`highest`: no tf32 units); None where it was
    not recorded.
    """

    device: str
    gb_per_s: float
    bf16_tflop_per_s: float | None
    fp16_tflop_per_s: float | None
    tf32_tflop_per_s: float | None
    fp32_tflop_per_s: float
    float32_precision: str | None = None


class NotedCall(Struct, frozen=True):
    """What torch itself said of an operator call while the eager form was tagged; None where that says nothing of the
    operator that launched the work.

    `bytes` are those read and written, `output` is the size of the (first) result.
    """

    bytes: int | None
    flops: int | None
    output: tuple[int, ...] | None


#: What a kernel meets first: a limit of the device, or of copies or of communication; `small` is too small to fill the
#: GPU, `neither` is far below both limits for another reason.
Limit = Literal["compute", "memory", "small", "copy", "communication", "neither"]


class Rates(Struct, frozen=True):
    """One operator call's estimated work and rates, the mean of all calls like it; None where it cannot be derived from
    what was recorded."""

    bytes: float | None  #: Memory traffic if each input is read once and each output written once.
    flops: float | None  #: Floating-point operations, a multiplication and an addition being two.
    gb_per_s: float | None  #: 10^9 bytes a second.
    tflop_per_s: float | None  #: 10^12 operations a second.
    bandwidth_share: float | None  #: Of the device's published peak, 0 to 1.
    arithmetic_share: float | None  #: Of the device's published peak, 0 to 1.
    limit: Limit | None = None  #: By estimate; None where its sizes or the device's peak are not known.


class Traffic(Struct, frozen=True):
    """Estimated memory traffic of eager kernels and of those that took their place. An operator call counts where its
    main kernel is: what else it launched moves nothing of its own."""

    eager_bytes: float | None  #: None where that of no call can be derived.
    compiled_bytes: float | None  #: None where that of no call can be derived.
    eager_missing: float  #: Calls whose traffic could not be derived.
    compiled_missing: float  #: Calls whose traffic could not be derived.

    @property
    def removed_bytes(self) -> float | None:
        if self.eager_bytes is None or self.compiled_bytes is None or self.eager_missing or self.compiled_missing:
            return None
        return self.eager_bytes - self.compiled_bytes


class TrafficTotal(Struct, frozen=True):
    """Estimated memory traffic per step of the kernel groups in which that of every call of both sides is known."""

    eager_bytes: float
    compiled_bytes: float
    a_time_known: float  #: The share of A's GPU time in these groups, 0 to 1.
    b_time_known: float  #: The share of B's GPU time in these groups, 0 to 1.

    @property
    def removed_bytes(self) -> float:
        """Less than 0 where B moves more."""
        return self.eager_bytes - self.compiled_bytes


class Operator(Struct, frozen=True):
    """One call of an operator: its name (`aten::addmm`), and the sizes and types of its inputs as recorded.

    `dims[i]` is the shape of input i, empty for what is no tensor; `dtypes[i]` its type as the profiler writes it
    (`c10::BFloat16`). The tensors of a list stand one by one, each of the type `TensorList`. Both are empty where
    shapes were not recorded. `values[i]` is input i as the profiler writes it where it is no tensor (`[2, 2]`, `True`),
    known of convolutions and attention alone: empty for other operators. It is not compared: two calls may differ in a
    seed. `strides[i]` is how many elements apart neighbours of each dimension of input i lie, known of the same
    operators and of calls with a tensor that is repeated by `expand`, where it is 0; it is not compared either: work
    laid out otherwise is the same work.
    """

    name: str
    dims: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    values: tuple[str, ...] = ()
    strides: tuple[tuple[int, ...], ...] = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Operator):
            return False
        return (self.name, self.dims, self.dtypes) == (other.name, other.dims, other.dtypes)

    def __hash__(self) -> int:
        return hash((self.name, self.dims, self.dtypes))


#: The family of what Inductor wrote in C++, for a CPU.
CPP = "cpp"


class Activity(Struct, frozen=True, gc=False):
    """A kernel, copy or set, in the order in which they were launched (inside a CUDA graph: started).

    `duration_us` is the mean over the steps that ran the same sequence. `operator` is the innermost operator around the
    launch; None where the recording holds none (CUDA activity only, replays of CUDA graphs). `within` are the names of
    the operators around the launch, the outermost first, `operator`'s the last; of more than 64 the innermost.
    Activities that follow one another with the same `call` were launched by one call of the outermost one, and those
    with the same `operator_call` by one call of `operator`; both are None where no operator is known. `noted` is what
    torch itself said of the call, where it was asked.
    """

    name: str
    family: str
    duration_us: float
    operator: Operator | None
    within: tuple[str, ...] = ()
    call: int | None = None
    operator_call: int | None = None
    noted: NotedCall | None = None


#: Where the operators come from: the recording itself, the rich recording of the same form, another trace of the same
#: model that was given for it, or nowhere.
OperatorSource = Literal["own", "rich", "lent", "none"]


class Sequence(Struct, frozen=True):
    """All activities of one side, in order.

    When every step ran the same sequence, `activities` is that of one step and `per_step` is 1; else those of all steps
    follow one another and `per_step` is one over their number. A figure per step is `per_step` times the sum. `starts`
    are then the positions at which steps begin; empty where it is one step, or they are not known.
    """

    activities: tuple[Activity, ...]
    per_step: float
    operators: OperatorSource
    starts: tuple[int, ...] = ()
