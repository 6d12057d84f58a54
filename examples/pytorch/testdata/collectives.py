"""What each function of peermesh.py does to tensors, on two ranks, and what it refuses.
In the end one rank fails while the other waits for it."""
import torch
from torch import nn

import peermesh

rank, n = peermesh.rank(), peermesh.world_size()
assert (rank in (0, 1), n) == (True, 2), (rank, n)

for dtype in (torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.float16, torch.bfloat16):
    for op, want in (("sum", 3), ("min", 1), ("max", 2)):
        t = torch.full((2, 3), rank + 1, dtype=dtype)
        peermesh.all_reduce(t, op)
        assert (t == want).all() and t.dtype == dtype, (dtype, op, t)
t = torch.tensor([1.0, 4.0]) * (rank + 1)
peermesh.all_reduce(t, "avg")
assert t.tolist() == [1.5, 6.0], t
t = torch.tensor(float(rank))  # no dimensions
peermesh.all_reduce(t)
assert t.item() == 1, t
t = (torch.arange(6.0) * (rank + 1)).view(2, 3).t()  # not contiguous
peermesh.all_reduce(t)
assert t.tolist() == [[0, 9], [3, 12], [6, 15]], t
peermesh.all_reduce(torch.empty(0))  # nothing, and nothing is asked

torch.manual_seed(rank)
model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2).double())
model[1](torch.randn(5, 4))  # changes its buffers, of which one is int64
before = {name: t.clone() for name, t in model.state_dict().items()}
peermesh.broadcast(model, src=1)
for name, t in model.state_dict().items():
    assert rank == 0 or torch.equal(t, before[name]), name
    most = t.double().clone()
    peermesh.all_reduce(most, "max")
    assert torch.equal(most, t.double()), name  # alike on both

for i, p in enumerate(model.parameters()):
    p.grad = torch.full_like(p, i + rank)
peermesh.average_gradients(model)
for i, p in enumerate(model.parameters()):
    assert (p.grad == i + 0.5).all(), (i, p.grad)

for part, refused in (("models differ", lambda: peermesh.broadcast(nn.Linear(2, 3 + rank))),
                      ("weight has no gradient", lambda: peermesh.average_gradients(nn.Linear(2, 3)))):
    try:
        refused()
    except peermesh.Error as e:
        assert part in str(e), e
    else:
        assert False, part

peermesh.barrier()
print("all is well", flush=True)
if rank == 1:
    raise ValueError("not today")
try:
    peermesh.barrier()
except peermesh.Error as e:
    print("told:", e)
