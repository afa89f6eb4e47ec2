"""Running a workload: forms, warm-up, timing, recording. The only room that uses torch.profiler."""
