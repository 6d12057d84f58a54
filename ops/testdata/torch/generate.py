#!/usr/bin/python3
"""Write what torch.distributed does over Gloo, for ops/torch_test.go to compare.

    /usr/bin/python3 ops/testdata/torch/generate.py ops/testdata/torch/golden.jsonl

needs Debian's python3-torch and libopenblas0. The file is the same on every run.
Its first line names the version; each of the others is one call:

    call       torch's name, or "p2p" for a program of messages
    ranks      the size of the world
    group      if the call is on one, the ranks that new_group was given
    dtype, op  of the elements and of the reduction
    root       src or dst, a rank in the world
    split      of all_to_all_single: by rank, [input splits, output splits]
    list       false: gather's or scatter's root gives none. true: every rank does
    late, all  of monitored_barrier: who does not come, and wait_all_ranks
    steps      of p2p: by rank, "VERB PEER TAG ELEMENTS" or "VERB PEER TAG COUNT".
               Those that do not block are waited for at the end
    batch      the steps are one batch_isend_irecv
    in, out    by rank, what the call is given and what it leaves. Null: nothing, or
               nothing that torch defines. An element is its bits in hexadecimal;
               " | " is between the tensors of a list, and between objects,
               which are strings
    place      by rank, the rank in the group
    source     by rank, who each receive was from
    error      by rank, what was raised, or how the process ended
    tolerance  of floats that are not exact, absolute
    rule       Peermesh deliberately does otherwise; torch_test.go says what

Not here, for Gloo 1.13 lacks it or its end is a matter of luck: reduce_scatter,
all_to_all of lists, all_gather_into_tensor; bfloat16, bool and 16-bit integers in
collectives; AVG and PREMUL_SUM; ranks that differ in all_reduce's count.
"""

import datetime
import json
import multiprocessing
import os
import random
import re
import sys
import tempfile
import time
import warnings

import torch
import torch.distributed as dist

sys.dont_write_bytecode = True
from cases import alone, regular

PATIENCE = datetime.timedelta(seconds=5)  # of a rank, with another
BARRIER = datetime.timedelta(seconds=1)


def dtype(case):
    return getattr(torch, case.get("dtype", "int64"))


def decode(text, t):
    """The tensor of a text: encode's reverse."""
    width = torch.tensor([], dtype=t).element_size()
    data = b"".join(int(e, 16).to_bytes(width, "little") for e in text.split())
    if not data:
        return torch.zeros(0, dtype=t)
    return torch.tensor(list(data), dtype=torch.uint8).view(t)


def decode_list(text, t):
    """The tensors between bars."""
    return [decode(part, t) for part in text.split("|")]


def encode(x):
    """The text of a tensor: each element's bits, in hexadecimal."""
    width = x.element_size()
    data = bytes(x.view(torch.uint8).tolist()) if x.numel() else b""
    return " ".join(data[i:i + width][::-1].hex() for i in range(0, len(data), width))


def encode_list(xs):
    return " | ".join(encode(x) for x in xs)


def reduce_op(case):
    return getattr(dist.ReduceOp, case["op"].upper())


# Each call takes the case, this rank and its input, and returns the output.


def broadcast(c, rank, x, group):
    dist.broadcast(x, c["root"], group=group)
    return encode(x)


def reduce(c, rank, x, group):
    dist.reduce(x, c["root"], op=reduce_op(c), group=group)
    return encode(x) if rank == c["root"] or "rule" in c else None


def all_reduce(c, rank, x, group):
    dist.all_reduce(x, op=reduce_op(c), group=group)
    return encode(x)


def all_reduce_coalesced(c, rank, x, group):
    xs = decode_list(c["in"][rank], dtype(c))
    dist.all_reduce_coalesced(xs, op=reduce_op(c), group=group)
    return encode_list(xs)


def all_gather(c, rank, x, group):
    out = [torch.zeros_like(x) for _ in c.get("group", range(c["ranks"]))]
    dist.all_gather(out, x, group=group)
    return encode(torch.cat(out))


def all_gather_coalesced(c, rank, x, group):
    xs = decode_list(c["in"][rank], dtype(c))
    out = [[torch.zeros_like(x) for x in xs] for _ in range(c["ranks"])]
    dist.all_gather_coalesced(out, xs, group=group)
    return encode_list(sum(out, []))


def gather(c, rank, x, group):
    at = rank == c["root"]
    out = [torch.zeros_like(x) for _ in c.get("group", range(c["ranks"]))]
    dist.gather(x, out if c.get("list", at) else None, c["root"], group=group)
    return encode(torch.cat(out)) if at else None


def scatter(c, rank, x, group):
    parts = len(c.get("group", range(c["ranks"])))
    lists = decode_list(c["in"][c["root"]], dtype(c))
    if len(lists) == 1:
        lists = list(lists[0].chunk(parts)) if len(lists[0]) else lists * parts
    out = torch.zeros_like(lists[0])
    dist.scatter(out, lists if c.get("list", rank == c["root"]) else None, c["root"], group=group)
    return encode(out)


def all_to_all_single(c, rank, x, group):
    give, take = c["split"][rank] if "split" in c else (None, None)
    out = torch.zeros(sum(take) if take else len(x), dtype=x.dtype)
    dist.all_to_all_single(out, x, take, give, group=group)
    return encode(out)


def broadcast_object_list(c, rank, x, group):
    given = c["in"][c["root"]].split(" | ")
    objects = given if rank == c["root"] else [None] * len(given)
    dist.broadcast_object_list(objects, c["root"], group=group)
    return " | ".join(objects) if None not in objects else None


def all_gather_object(c, rank, x, group):
    out = [None] * len(c.get("group", range(c["ranks"])))
    dist.all_gather_object(out, c["in"][rank], group=group)
    return " | ".join(out) if None not in out else None


def gather_object(c, rank, x, group):
    out = [None] * len(c.get("group", range(c["ranks"]))) if rank == c["root"] else None
    dist.gather_object(c["in"][rank], out, c["root"], group=group)
    return " | ".join(out) if out and None not in out else None


def scatter_object_list(c, rank, x, group):
    given, out = c["in"][rank], [None]
    dist.scatter_object_list(out, given and given.split(" | "), c["root"], group=group)
    return out[0]


def barrier(c, rank, x, group):
    """Leaves how many ranks had come when this one left."""
    store = dist.distributed_c10d._get_default_store()
    store.add(c["key"], 1)
    dist.barrier(group=group)
    return encode(torch.tensor([store.add(c["key"], 0)]))


def monitored_barrier(c, rank, x, group):
    if rank in c["late"]:
        time.sleep(4 * BARRIER.total_seconds())
    else:
        dist.monitored_barrier(timeout=BARRIER, wait_all_ranks=c["all"])


def new_group(c, rank, x, group):
    """What the group does not already show."""


def p2p(c, rank, x, group):
    works, ops, got, source = [], [], [], []
    for step in c["steps"][rank]:
        verb, peer, tag, *rest = step.split()
        peer, tag = None if peer == "any" else int(peer), int(tag)
        if verb.endswith("recv"):
            x = torch.zeros(int(rest[0]), dtype=dtype(c))
            got.append(x)
        else:
            x = decode(" ".join(rest), dtype(c))
        call = getattr(dist, verb)
        if c.get("batch"):
            ops.append(dist.P2POp(call, x, peer, tag=tag))
        elif verb == "recv":
            source.append(call(x, peer, group=group, tag=tag))
        elif verb == "irecv":
            works.append(call(x, peer, group=group, tag=tag))
            source.append(peer)
        else:
            works.append(call(x, peer, group=group, tag=tag))
    works += dist.batch_isend_irecv(ops) if ops else []
    for work in works:
        if work:
            work.wait()
    return {"out": encode_list(got) if got else None, "source": source}


def perform(c, rank):
    """What a call does on a rank, in the fields of its line."""
    result, group = {}, None
    try:
        if "group" in c:
            group = dist.new_group(c["group"])
            result["place"] = dist.get_rank(group)
        text = c["in"][rank] if "in" in c else None
        lone = text is not None and "dtype" in c and "|" not in text
        x = decode(text, dtype(c)) if lone else None
        member = rank in c.get("group", [rank])
        if c["call"] != "p2p":
            out = globals()[c["call"]](c, rank, x, group)
            result["out"] = out if member or c["call"] in IN_PLACE else None
        elif member:
            result.update(p2p(c, rank, None, group))
    except (RuntimeError, ValueError) as e:
        text = str(e).split("\n")[0].split("\\n")[0]
        text = re.sub(r"\[\./gloo/transport.*", "connection lost", text)
        result["error"] = re.sub(r" object at 0x[0-9a-f]+", "", text)
    return result


IN_PLACE = ("broadcast", "reduce", "all_reduce")


def work(rank, size, folder, cases):
    """One rank's process."""
    sys.stderr = os.fdopen(os.dup(2), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # Gloo tells it what results tell
    warnings.simplefilter("ignore")  # of deprecation, and to outsiders
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.FileStore(folder + "/store", size),
                            rank=rank, world_size=size, timeout=PATIENCE)
    results = [perform(c, rank) for c in cases]
    with open(f"{folder}/{rank}", "w", encoding="ascii") as f:
        json.dump(results, f)


def world(size, cases):
    """Run cases in one world of processes and return them with their results."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = [multiprocessing.Process(target=work, args=(r, size, folder, cases), daemon=True)
                 for r in range(size)]
        for p in ranks:
            p.start()
        results = []
        for r, p in enumerate(ranks):
            p.join(60)
            if p.exitcode is None:
                raise SystemExit(f"rank {r} of {size} hangs in one of {len(cases)} cases")
            if p.exitcode > 0 or p.exitcode < 0 and len(cases) > 1:
                raise SystemExit(f"rank {r} of {size} ends with {p.exitcode}")
            if p.exitcode < 0:
                results.append([{"error": "the process dies"}] * len(cases))
                continue
            with open(f"{folder}/{r}", encoding="ascii") as f:
                results.append(json.load(f))
    for c, by_rank in zip(cases, zip(*results)):
        for field in ("place", "out", "source", "error"):
            values = [r.get(field) for r in by_rank]
            if any(v not in (None, []) for v in values):
                c[field] = values
    return cases


def main(path):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    lines = [{"torch": torch.__version__, "backend": "gloo"}]
    cases = regular(random.Random(3))
    for size in sorted({c["ranks"] for c in cases}):
        lines += world(size, [c for c in cases if c["ranks"] == size])
    if failed := [line for line in lines if "error" in line]:
        raise SystemExit(f"not so regular: {failed[0]}")
    for case in alone():
        lines += world(case["ranks"], [case])
    with open(path, "w", encoding="ascii") as f:
        for line in lines:
            line.pop("key", None)
            f.write(json.dumps(line, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
