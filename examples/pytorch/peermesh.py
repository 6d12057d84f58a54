"""Averages a PyTorch program's gradients over the ranks of a Peermesh.

    import peermesh

    peermesh.broadcast(model)                  # all begin with rank 0's values
    for x, y in batches:                       # of this rank: rank(), world_size()
        optimizer.zero_grad()
        loss(model(x), y).backward()
        peermesh.average_gradients(model)
        optimizer.step()

Every rank makes the same calls in the same order. A program that is started by itself,
without examples/pytorch, is a world of one. What goes wrong is a peermesh.Error; after
one, nothing more can be done with the others. The protocol is in doc.go.
"""
import mmap
import os
import socket
import struct
import zlib

import torch

_DTYPES = {torch.float32: 1, torch.float64: 2, torch.int32: 3, torch.int64: 4, torch.uint8: 5,
           torch.float16: 6, torch.bfloat16: 7, torch.int8: 8, torch.int16: 9}
_OPS = {"sum": 0, "avg": 1, "min": 2, "max": 3}
_MAX_FRAME = 4096
_TIMEOUT = 3600  # seconds; the bridge gives up before


class Error(RuntimeError):
    """The bridge's reason why the ranks have parted."""


class _Bridge:
    def __init__(self, path):
        self.rank, self.world = 0, 1
        self.memory, self.size, self.conn = None, 0, None
        if path:
            self.conn = socket.socket(socket.AF_UNIX)
            self.conn.settimeout(_TIMEOUT)
            self.conn.connect(path)
            self.rank, self.world = struct.unpack("<II", self.ask(b"H" + struct.pack("<I", 1))[0])

    def ask(self, request):
        """Sends a request; returns what its answer holds, and descriptors."""
        try:
            self.conn.sendall(struct.pack("<I", len(request)) + request)
        except BrokenPipeError:
            pass  # the reason has been sent already
        try:
            head, fds, _, _ = socket.recv_fds(self.conn, 4, 1)
            n, = struct.unpack("<I", head + self.read(4 - len(head)))
            answer = self.read(min(n, _MAX_FRAME))
        except OSError as e:
            raise Error(f"the bridge does not answer: {e}") from None
        if answer[:1] != b"K":
            raise Error(answer[1:].decode(errors="replace"))
        return answer[1:], fds

    def read(self, n):
        data = b""
        while len(data) < n:
            part = self.conn.recv(n - len(data))
            if not part:
                raise ConnectionError("it has ended")
            data += part
        return data

    def view(self, n, dtype):
        """A tensor of n elements in the memory that is shared, which grows as need be."""
        size = n * torch.empty(0, dtype=dtype).element_size()
        if size > self.size:
            _, fds = self.ask(b"S" + struct.pack("<Q", size))
            self.memory, self.size = mmap.mmap(fds[0], size), size
            os.close(fds[0])
        return torch.frombuffer(self.memory, dtype=dtype, count=n)

    def each(self, tensors, head, tail=b""):
        """Has the bridge do one request on the tensors of each element type, in place."""
        kinds = {}
        for t in tensors:
            kinds.setdefault(t.dtype, []).append(t)
        for dtype, same in kinds.items():
            n = sum(t.numel() for t in same)
            if self.conn is None or n == 0:
                continue
            if dtype not in _DTYPES:
                raise Error(f"tensors of {dtype} cannot be sent")
            flat = self.view(n, dtype)
            torch.cat([t.reshape(-1) for t in same], out=flat)
            self.ask(head + struct.pack("<B", _DTYPES[dtype]) + tail + struct.pack("<Q", n))
            for t, part in zip(same, flat.split([t.numel() for t in same])):
                t.copy_(part.view_as(t))


_bridge = _Bridge(os.environ.get("PEERMESH_SOCKET"))


def rank():
    """This rank, from 0."""
    return _bridge.rank


def world_size():
    """How many ranks there are."""
    return _bridge.world


def all_reduce(tensor, op="sum"):
    """Folds a tensor over all ranks, in place: "sum", "avg" (of floats), "min" or "max"."""
    with torch.no_grad():
        _bridge.each([tensor], b"R", b"%c" % _OPS[op])


def broadcast(model, src=0):
    """Gives a model's parameters and buffers on all ranks rank src's values. Models that
    differ in a name, a shape or an element type are an error on every rank."""
    state = list(model.named_parameters()) + list(model.named_buffers())
    form = zlib.crc32(repr([(name, tuple(t.shape), t.dtype) for name, t in state]).encode())
    both = torch.tensor([form, -form])
    all_reduce(both, "max")
    if both[0] != -both[1]:
        raise Error("the ranks' models differ in their parameters' names, shapes or types")
    with torch.no_grad():
        _bridge.each([t.data for _, t in state], b"B", struct.pack("<I", src))


def average_gradients(model):
    """Leaves in each trainable parameter's grad the average over all ranks, alike to the
    bit. It is that over all samples where the ranks' batches are equally long."""
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    for name, p in trained:
        if p.grad is None:
            raise Error(f"parameter {name} has no gradient")
    with torch.no_grad():
        _bridge.each([p.grad for _, p in trained], b"R", b"%c" % _OPS["avg"])


def barrier():
    """Returns when all ranks have come to it."""
    if _bridge.conn is not None:
        _bridge.ask(b"W")
