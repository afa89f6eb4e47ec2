"""Running a workload: variants, warm-up, timing, recording, in this process and in fresh ones. The only room that uses
torch.profiler."""
