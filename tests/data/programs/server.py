"""A worker of a server: requests come by a queue, a thread of its own answers them. REQUESTS"""

import queue
import sys
import threading

import torch
from torch import nn

GPU = torch.cuda.is_available()
device, width, depth = ("cuda", 1024, 12) if GPU else ("cpu", 32, 2)
requests: queue.Queue = queue.Queue()
answers: queue.Queue = queue.Queue()


class Worker(threading.Thread):
    def __init__(self) -> None:
        super().__init__()
        layers = [nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, batch_first=True) for _ in range(depth)]
        self.model = torch.compile(nn.Sequential(*layers).to(device).eval())

    def run(self) -> None:
        with torch.inference_mode():
            while (request := requests.get()) is not None:
                answers.put(self.model(request.to(device)).mean().item())


worker = Worker()
worker.start()
for _ in range(int(sys.argv[1])):
    requests.put(torch.randn(1, 64, width))
    answers.get()
requests.put(None)
worker.join()
print("answered")
