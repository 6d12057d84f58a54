#!/usr/bin/python3
"""Write what torch's powerSGD_hook does, for trainer/compress/golden_test.go to compare.

    /usr/bin/python3 trainer/compress/testdata/torch/powersgd.py trainer/compress/testdata/torch/powersgd.jsonl

needs Debian's python3-torch and libopenblas0. Two processes average by a
DistributedDataParallel over Gloo. The file is the same on every run. Its first line
names the version; each of the others is one case:

    config    the settings, by the name that they have in Go
    type      of the gradients
    draws     the random matrices Q that torch drew: by step, and then by the number
              of rows, which is another one for each parameter
    averages  after each step, the gradients of all parameters, in SHAPES' order
    feedback  after the last, what each process keeps, in the same order; torch's
              gradients come into the hook undivided, so that is twice what it would
              be of ones that are divided

grad, below, is the gradient of an element.
"""

import json
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power

RANKS, STEPS = 2, 6
SHAPES = {"conv": [8, 2, 3], "wide": [5, 12], "bias": [8], "tall": [13, 3], "small": [2, 2]}

# Without feedback and warm start torch compresses from step 0, else from 2 at the earliest.
CASES = [
    ({"Start": 2}, "float64"),
    ({"Start": 2, "Rank": 2, "MinRate": 1}, "float64"),
    ({"Start": 2, "Rank": 2, "MinRate": 1, "Epsilon": 0.125}, "float64"),
    ({"Start": 3, "Rank": 3, "MinRate": 1}, "float64"),
    ({"Start": 2, "NoFeedback": True}, "float64"),
    ({"Start": 2, "NoWarmStart": True}, "float64"),
    ({"Start": -1, "NoFeedback": True, "NoWarmStart": True}, "float64"),
    ({"Start": 2}, "float32"),
]


def grad(rank, step, element):
    return ((7 * rank + 5 * step + 3 * element + step * element + (rank + 1) * element * element) % 13 - 5) / 8


class Net(torch.nn.Module):
    """Its gradients are what forward is given."""

    def __init__(self, dtype):
        super().__init__()
        for name, shape in SHAPES.items():
            self.register_parameter(name, torch.nn.Parameter(torch.zeros(shape, dtype=dtype)))

    def forward(self, gradients):
        return sum((p * g).sum() for p, g in zip(self.parameters(), gradients))


def gradients(rank, step, dtype):
    out, first = [], 0
    for shape in SHAPES.values():
        n = torch.Size(shape).numel()
        out.append(torch.tensor([grad(rank, step, first + i) for i in range(n)], dtype=dtype).view(shape))
        first += n
    return out


def flat(tensors):
    return [float("%.12g" % x) for t in tensors for x in t.flatten().tolist()]


def run(rank, config, dtype):
    state = power.PowerSGDState(
        None,
        matrix_approximation_rank=config.get("Rank", 1),
        start_powerSGD_iter=max(config["Start"], 0),
        min_compression_rate=config.get("MinRate", 2),
        orthogonalization_epsilon=config.get("Epsilon", 0),
        use_error_feedback=not config.get("NoFeedback", False),
        warm_start=not config.get("NoWarmStart", False),
    )
    net = Net(dtype)
    model = torch.nn.parallel.DistributedDataParallel(net)
    draws, where, real = [{} for _ in range(STEPS)], [], torch.randn

    def hook(state, bucket):
        where[:] = bucket.parameters()
        return power.powerSGD_hook(state, bucket)

    def randn(*shape, **kw):
        q = real(*shape, **kw)
        draws[step][shape[1]] = flat([q])
        return q

    model.register_comm_hook(state, hook)
    averages = []
    torch.randn = randn
    for step in range(STEPS):
        net.zero_grad()
        model(gradients(rank, step, dtype)).backward()
        averages.append(flat(p.grad for p in net.parameters()))
    torch.randn = real
    left = torch.zeros(sum(p.numel() for p in where), dtype=dtype)
    if state.error_dict:  # there is one bucket
        (left,) = state.error_dict.values()
    parts = dict(zip(map(id, where), left.split([p.numel() for p in where])))
    return draws, averages, flat(parts[id(p)] for p in net.parameters())


def main(rank, store, path):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=RANKS)
    lines = [{"torch": torch.__version__}]
    for config, name in CASES:
        draws, averages, left = run(rank, config, getattr(torch, name))
        feedback = [None] * RANKS
        dist.all_gather_object(feedback, left)
        lines.append({"config": config, "type": name, "draws": draws, "averages": averages, "feedback": feedback})
    if rank == 0:
        with open(path, "w") as out:
            for line in lines:
                print(json.dumps(line, separators=(",", ":")), file=out)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(main, (folder + "/store", sys.argv[1]), nprocs=RANKS)
