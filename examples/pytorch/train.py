"""MNIST as PyTorch's users train it, on as many ranks as there are.

    go run ./examples/pytorch -n 2 -mnist -- python3 examples/pytorch/train.py
    MNIST_DIR=... python3 examples/pytorch/train.py      # by itself: the same model
"""
import argparse
import array
import gzip
import os
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data.distributed import DistributedSampler

import peermesh


def read(name):
    """An IDX file's bytes after its header, of 4 bytes for each dimension and 4 more."""
    path = os.path.join(os.environ["MNIST_DIR"], name)
    with gzip.open(path + ".gz") if os.path.exists(path + ".gz") else open(path, "rb") as f:
        data = bytearray(f.read())
    return torch.frombuffer(data, dtype=torch.uint8, offset=4 + 4 * data[3])


def load(half):
    x = read(half + "-images-idx3-ubyte").view(-1, 1, 28, 28)
    return (x.float() / 255 - 0.1307) / 0.3081, read(half + "-labels-idx1-ubyte").long()


def network():
    return nn.Sequential(
        nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(10, 20, 5), nn.MaxPool2d(2), nn.ReLU(),
        nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Linear(50, 10))


def test(model, x, y):
    """The share of right answers; each rank judges its part of the samples."""
    mine = slice(peermesh.rank(), None, peermesh.world_size())
    with torch.no_grad():
        right = sum((model(a).argmax(1) == b).sum() for a, b in zip(x[mine].split(500), y[mine].split(500)))
    peermesh.all_reduce(right)
    return right.item() / len(x)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=1)
    p.add_argument("--steps", type=int, default=0, help="at most; 0: all of the epochs")
    p.add_argument("--batch-size", type=int, default=128, help="of all ranks together")
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--save", help="write the parameters to FILE.RANK, as float32")
    a = p.parse_args()
    torch.manual_seed(peermesh.rank())
    model = network()
    peermesh.broadcast(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=a.lr, momentum=0.9)
    x, y = load("train")
    sampler = DistributedSampler(range(len(x)), num_replicas=peermesh.world_size(), rank=peermesh.rank(), drop_last=True)
    step, spent, began = 0, 0.0, time.perf_counter()
    for epoch in range(a.epochs):
        sampler.set_epoch(epoch)
        for i in torch.tensor(list(sampler)).split(a.batch_size // peermesh.world_size()):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[i]), y[i])
            loss.backward()
            t = time.perf_counter()
            peermesh.average_gradients(model)
            spent += time.perf_counter() - t
            optimizer.step()
            step += 1
            if step % 100 == 0 and peermesh.rank() == 0:
                print(f"step {step}: rank 0's loss {loss.item():.4f}", flush=True)
            if step == a.steps:
                break
        if step == a.steps:
            break
    took = time.perf_counter() - began
    accuracy = test(model, *load("t10k"))
    if peermesh.rank() == 0:
        print(f"{peermesh.world_size()} ranks, {step} steps in {took:.1f} s, {1000 * spent / step:.2f} ms of each to average:"
              f" {100 * accuracy:.2f} % of the test images are right", flush=True)
    if a.save:
        with open(f"{a.save}.{peermesh.rank()}", "wb") as f:
            array.array("f", torch.cat([p.data.reshape(-1) for p in model.parameters()]).tolist()).tofile(f)


if __name__ == "__main__":
    main()
