"""What a reader is advised to do."""

from tracekit.model.advice import Advice, Command


class RunAgain(Command):
    code = "run_again"

    def short(self) -> str:
        """Nothing: what is changed says it."""
        return ""


class ListScopes(Command):
    code = "list_scopes"
    says_short = "a wider --scope"


class CompileLayers(Advice):
    code = "compile_layers"
    says = (
        "compile repeated layers one by one (layer.forward = torch.compile(layer.forward)): the mask then stays"
        " outside of compiled code"
    )
    says_short = "compile repeated layers one by one"


class PinMemory(Advice):
    code = "pin_memory"
    says = "tensor.pin_memory().to(device, non_blocking=True), or create the tensor on the GPU"
    says_short = "pin host memory, copy with non_blocking=True"


class KeepOnGpu(Advice):
    """A value that the host reads is waited for whatever memory it goes to."""

    code = "keep_on_gpu"
    says = "keep the value on the GPU, or copy it once after the call"
    says_short = "keep the value on the GPU"


class ReadAfterTheCall(Advice):
    code = "read_after_the_call"
    says = (
        "keep the value on the GPU, or read it once after the call: .item(), bool() of a tensor and .cpu() synchronise"
    )
    says_short = "read values after the call, not within it"
