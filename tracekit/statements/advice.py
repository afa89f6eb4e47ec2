"""What a reader is advised to do."""

from tracekit.model.advice import Advice, Command


class RunAgain(Command):
    code = "run_again"

    def short(self) -> str:
        """Nothing: what is changed says it."""
        return ""


class ListScopes(Command):
    code = "list_scopes"

    def short(self) -> str:
        return "a wider --scope"


class CompileLayers(Advice):
    code = "compile_layers"

    def long(self) -> str:
        return (
            "compile repeated layers one by one (layer.forward = torch.compile(layer.forward)): the mask then stays"
            " outside of compiled code"
        )

    def short(self) -> str:
        return "compile repeated layers one by one"


class PinMemory(Advice):
    code = "pin_memory"

    def long(self) -> str:
        return "tensor.pin_memory().to(device, non_blocking=True), or create the tensor on the GPU"

    def short(self) -> str:
        return "pin host memory, copy with non_blocking=True"


class KeepOnGpu(Advice):
    """A value that the host reads is waited for whatever memory it goes to."""

    code = "keep_on_gpu"

    def long(self) -> str:
        return "keep the value on the GPU, or copy it once after the call"

    def short(self) -> str:
        return "keep the value on the GPU"


class ReadAfterTheCall(Advice):
    code = "read_after_the_call"

    def long(self) -> str:
        return (
            "keep the value on the GPU, or read it once after the call: .item(), bool() of a tensor and .cpu()"
            " synchronise"
        )

    def short(self) -> str:
        return "read values after the call, not within it"
