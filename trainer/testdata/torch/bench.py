"""What BenchmarkStep of package trainer measures, of torch.optim with one thread: the same
parameters, gradients and settings. Prints the median of a step in ms, for PyTorch's default,
with foreach, and for the loop over parameters; run both in turn, on a quiet machine."""

import statistics
import time

import torch
from torch import optim

KINDS = {
    "SGD": (optim.SGD, dict(lr=0.1, momentum=0.9, weight_decay=0.01)),
    "SGD without momentum": (optim.SGD, dict(lr=0.1, weight_decay=0.01)),
    "Adadelta": (optim.Adadelta, dict(weight_decay=0.01)),
    "Adagrad": (optim.Adagrad, dict(lr=0.1, lr_decay=0.1, weight_decay=0.01)),
    "Adam": (optim.Adam, dict(lr=0.1, weight_decay=0.01, amsgrad=True)),
    "AdamW": (optim.AdamW, dict(lr=0.1)),
    "RMSprop": (optim.RMSprop, dict(momentum=0.9, centered=True, weight_decay=0.01)),
}


def parameters():
    for n in [144, 16, 4608, 32, 294912, 64, 640, 10]:
        p = torch.zeros(n, requires_grad=True)
        p.grad = torch.sin(torch.arange(n, dtype=torch.float32))
        yield p


def median(optimizer, seconds=0.1):
    for _ in range(5):
        optimizer.step()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        optimizer.step()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


torch.set_num_threads(1)
for name, (kind, settings) in KINDS.items():
    for how, more in ("default", {}), ("foreach", {"foreach": True}), ("loop", {"foreach": False}):
        print(f"{name:22}{how:9}{median(kind(parameters(), **settings, **more)):.4f}", flush=True)
