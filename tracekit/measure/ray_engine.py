"""Ray as an executor. Ray alone places tasks, queues them and begins them again."""

from __future__ import annotations

import os
import socket
from concurrent.futures import Executor, Future
from contextlib import suppress
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from msgspec import Struct

from tracekit import __version__
from tracekit.errors import TracekitError, WorkerDiedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

#: How often Ray begins a task again whose worker or node died.
RETRIES = 3
#: How often it does where memory ran out, a minute later each time: for ever if nothing is said. Ray reads it when
#: imported.
MEMORY_RETRIES = ("RAY_task_oom_retries", "1")
#: Ray itself would look for a cluster that is not there for minutes.
REACH_SECONDS = 5.0
#: By what a node is chosen, and how the resource is called by which it tells the model of its GPUs.
NODE_LABEL, MODEL = "ray.io/node-id", "accelerator_type:"


class GpuNode(Struct, frozen=True):
    """A node of the cluster that has GPUs. `model` is what Ray calls these; None where it does not know them."""

    id: str
    host: str
    gpus: int
    model: str | None


class Room:
    """What one task needs on each of several nodes, until it is given back. Ray waits for all of it and then has it at
    once."""

    def __init__(self, executor: RayExecutor, group: Any, size: int, nodes: Sequence[GpuNode]) -> None:
        self._executor, self._group, self._size, self._nodes = executor, group, size, nodes
        self._tasks: list[Any] = []

    def submit(self, number: int, call: Callable[..., T], /, *args: Any) -> Future[T]:
        """The task on the node of that number, from 0."""
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        place = PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=number)
        task, told = self._executor.submit_at(place, call, args, {})
        self._tasks.append(task)
        return told

    def lacks(self) -> int:
        """For how many of its tasks there is no node any more: Ray waits for ever for one that has left."""
        alive = {node.id for node in self._executor.gpu_nodes()}
        return max(0, self._size - sum(node.id in alive for node in self._nodes))

    def give_back(self) -> None:
        """Ends what runs or waits there."""
        from ray.util.placement_group import remove_placement_group

        # Those that wait do so without the group, too.
        self._executor.cancel(self._tasks)
        remove_placement_group(self._group)


class RayExecutor(Executor):
    """Each call is a task of Ray."""

    def __init__(self, ray: Any, *, joined_here: bool) -> None:
        self._ray, self._joined_here = ray, joined_here
        self._task = ray.remote(_call)
        self._asked: dict[str, Any] = {"num_cpus": 1, "max_retries": RETRIES}
        self._tasks: list[Any] = []

    def ask_for(self, *, cpus: int = 1, gpus: int = 0, memory_bytes: int | None = None) -> None:
        """What each task takes of its node from now on: of memory no more than the largest has, or it would wait for
        ever."""
        self._asked |= {"num_cpus": cpus, "num_gpus": gpus}
        largest = max(self.per_node("memory"), default=0)
        if memory_bytes and largest:
            self._asked["memory"] = min(memory_bytes, int(largest))

    def per_node(self, resource: str) -> list[float]:
        """How much of it each node of the cluster has."""
        return [node["Resources"].get(resource, 0.0) for node in self._ray.nodes() if node["Alive"]]

    def gpu_nodes(self) -> tuple[GpuNode, ...]:
        """The nodes with GPUs that are alive."""
        nodes = []
        for node in self._ray.nodes():
            resources = node["Resources"]
            if node["Alive"] and resources.get("GPU", 0) >= 1:
                models = sorted(name.removeprefix(MODEL) for name in resources if name.startswith(MODEL))
                model = models[0] if models else None
                nodes.append(GpuNode(node["NodeID"], node["NodeManagerHostname"], int(resources["GPU"]), model))
        return tuple(nodes)

    def can_reserve(self) -> bool:
        """Whether this Ray can be told which nodes a room may be on."""
        from ray.util.placement_group import placement_group

        return "bundle_label_selector" in signature(placement_group).parameters

    def reserve(self, number: int, nodes: Sequence[GpuNode]) -> Room:
        """Room for a task on each of so many of these nodes."""
        from ray.util.placement_group import placement_group

        needs = {"CPU": self._asked["num_cpus"], "GPU": self._asked["num_gpus"]}
        among = {NODE_LABEL: f"in({','.join(node.id for node in nodes)})"}
        group = placement_group([needs] * number, "STRICT_SPREAD", bundle_label_selector=[among] * number)
        return Room(self, group, number, nodes)

    def submit(self, call: Callable[..., T], /, *args: Any, **named: Any) -> Future[T]:
        """Raises, when the result is asked for, WorkerDiedError where Ray gave up, and TracekitError where workers have
        not this tracekit."""
        _, told = self.submit_at("SPREAD", call, args, named)
        return told

    def submit_at(
        self, place: object, call: Callable[..., T], args: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[Any, Future[T]]:
        """The same where Ray's scheduling strategy says; and Ray's own name for the task."""
        options = self._asked | {"scheduling_strategy": place}
        task = self._task.options(**options).remote(__version__, str(Path.cwd()), call, args, named)
        self._tasks.append(task)
        told: Future[T] = Future()

        def tell(done: Future[T]) -> None:
            error = done.exception()
            if error is None:
                told.set_result(done.result())
            else:
                told.set_exception(_explained(error))

        task.future().add_done_callback(tell)
        return task, told

    def cancel(self, tasks: Sequence[Any]) -> None:
        """Ends those that have not ended."""
        for task in tasks:
            self._ray.cancel(task, force=True)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """`cancel_futures` ends what runs, too."""
        if cancel_futures:
            self.cancel(self._tasks)
        elif wait and self._tasks:
            self._ray.wait(self._tasks, num_returns=len(self._tasks), fetch_local=False)
        if self._joined_here:
            self._ray.shutdown()


def join_cluster(address: str | None) -> RayExecutor:
    """Tasks of the cluster at `address`, of that at RAY_ADDRESS, of this machine's, or of one that is started here and
    ends with this process; of the one that the program has joined already. Raises TracekitError where there is none."""
    os.environ.setdefault(*MEMORY_RETRIES)
    try:
        import ray
    except ImportError as error:
        raise TracekitError(f"--engine ray: {error}; pip install '.[ray]' in tracekit's checkout") from None
    if ray.is_initialized():
        return RayExecutor(ray, joined_here=False)
    asked = address or os.environ.get("RAY_ADDRESS") or None
    if asked is not None:
        _reach(asked)
    try:
        ray.init(asked, include_dashboard=None if asked else False, log_to_driver=False, logging_level="ERROR")
    except (OSError, RuntimeError, ValueError, ImportError, ray.exceptions.RayError) as error:
        what = f"cannot join the Ray cluster {asked}" if asked else "cannot start Ray here"
        raise TracekitError(f"{what}: {_line(error)}") from error
    return RayExecutor(ray, joined_here=True)


def _reach(address: str) -> None:
    """Raises TracekitError where nobody listens. What has no port is a name that Ray knows, such as `auto`."""
    place = urlsplit(address if "://" in address else f"//{address}")
    try:
        host, port = place.hostname, place.port
        if place.scheme == "ray" and None in (host, port):
            raise ValueError("it has no HOST:PORT")
        if host is not None and port is not None:
            socket.create_connection((host, port), REACH_SECONDS).close()
    except (OSError, ValueError) as error:
        raise TracekitError(f"no Ray cluster at {address} ({error}): check --engine and RAY_ADDRESS") from None


def _call(version: str, folder: str, call: Callable[..., T], args: tuple[Any, ...], named: dict[str, Any]) -> T:
    """In a worker: the call, in the folder that its paths are relative to."""
    if version != __version__:
        raise TracekitError(f"a Ray worker has tracekit {__version__}: install {version} on every node")
    # A job with a working folder of its own is there already.
    with suppress(OSError):
        os.chdir(folder)
    return call(*args, **named)


def _explained(error: BaseException) -> BaseException:
    """What can be done about it, in the place of Ray's own pages."""
    from ray import exceptions

    if isinstance(error, exceptions.OutOfMemoryError):
        return WorkerDiedError("memory ran out on the Ray node that worked on it", out_of_memory=True)
    if isinstance(error, exceptions.WorkerCrashedError | exceptions.NodeDiedError):
        return WorkerDiedError(f"the Ray worker that worked on it died ({RETRIES} retries)")
    if isinstance(error, exceptions.TaskCancelledError | exceptions.TaskPlacementGroupRemoved):
        return WorkerDiedError("the Ray node that was to work on it left the cluster")
    if isinstance(error, exceptions.RayTaskError):
        if isinstance(error.cause, TracekitError):
            return error.cause
        # Functions and their arguments travel by name.
        if isinstance(error.cause, exceptions.RaySystemError) or "failed to import on the worker" in str(error):
            return TracekitError(
                f"a Ray worker cannot load tracekit {__version__} ({_line(error)}): install it on every node, or have"
                " the job's runtime_env bring it"
            )
    return error


def _line(error: BaseException) -> str:
    """The last line of what it says: Ray puts traces of its own before it."""
    return next((line.strip() for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)
