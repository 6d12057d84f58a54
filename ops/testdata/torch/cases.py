"""The calls that generate.py makes, without their results. Pure: no torch here."""

import struct

FLOATS = {"float16": "e", "float32": "f", "float64": "d"}
INTS = {"int8": "b", "uint8": "B", "int32": "i", "int64": "q"}
FORMATS = {**FLOATS, **INTS}
EPSILON = {"float16": 2**-10, "float32": 2**-23, "float64": 2**-52}
ARITHMETIC = ("sum", "product", "min", "max")
BITWISE = ("band", "bor", "bxor")
SIZES = (1, 5, 17)
WORLDS = (1, 2, 3, 4)


def text(values, dtype="int64"):
    return " ".join(struct.pack(">" + FORMATS[dtype], v).hex() for v in values)


def exact(rng, dtype, n, op="sum"):
    """n values whose reduction is exact, in any order: integers wrap."""
    if dtype in INTS:
        bits = 8 * struct.calcsize(FORMATS[dtype])
        low = 0 if dtype == "uint8" else -1 << (bits - 1)
        return text([low + rng.getrandbits(bits) for _ in range(n)], dtype)
    of = (-2, -1, -0.5, 0.5, 1, 2) if op == "product" else range(-8, 9)
    return text([rng.choice(of) for _ in range(n)], dtype)


def reductions(rng):
    """Every reduction of every element type in every world."""
    pairs = [(t, op) for t in FORMATS for op in ARITHMETIC + (BITWISE if t in INTS else ())]
    for n in WORLDS:
        for i, (t, op) in enumerate(pairs):
            size = SIZES[(i + n) % len(SIZES)]
            x = [exact(rng, t, size, op) for _ in range(n)]
            yield {"call": "all_reduce", "ranks": n, "dtype": t, "op": op, "in": x}
            size = SIZES[(i + n + 1) % len(SIZES)]
            x = [exact(rng, t, size, op) for _ in range(n)]
            yield {"call": "reduce", "ranks": n, "dtype": t, "op": op, "root": i % n, "in": x}


def rounded(rng):
    """Sums and products whose last bits are a matter of order."""
    for t, epsilon in EPSILON.items():
        for n in WORLDS[1:]:
            for op in ("sum", "product"):
                x = [text([rng.uniform(0.5, 1.5) * rng.choice((-1, 1)) for _ in range(5)], t)
                     for _ in range(n)]
                yield {"call": "all_reduce", "ranks": n, "dtype": t, "op": op,
                       "tolerance": 12 * epsilon, "in": x}


def movements(rng):
    """Every call that only moves, in every world."""
    for n in WORLDS:
        for i, t in enumerate(FORMATS):
            size, root = SIZES[(i + n) % len(SIZES)], i % n
            c = {"ranks": n, "dtype": t}
            x = [exact(rng, t, size) for _ in range(n)]
            yield {"call": "broadcast", **c, "root": root, "in": x}
            size = SIZES[(i + n + 1) % len(SIZES)]
            x = [exact(rng, t, size) for _ in range(n)]
            yield {"call": "all_gather", **c, "in": x}
            yield {"call": "gather", **c, "root": root, "in": x}
            x = [exact(rng, t, n * SIZES[i % 2]) for _ in range(n)]
            yield {"call": "all_to_all_single", **c, "in": x}
            x = [exact(rng, t, n * size) if r == root else None for r in range(n)]
            yield {"call": "scatter", **c, "root": root, "in": x}
        yield {"call": "barrier", "ranks": n, "key": f"barrier {n}"}
        yield {"call": "monitored_barrier", "ranks": n, "late": [], "all": True}


def splits(rng):
    """Uneven all_to_all_single: counts[i][j] elements from i to j."""
    for n in WORLDS:
        for t in ("float32", "int64", "uint8"):
            counts = [[rng.randrange(4) for _ in range(n)] for _ in range(n)]
            split = [[counts[r], [counts[i][r] for i in range(n)]] for r in range(n)]
            x = [exact(rng, t, sum(counts[r])) for r in range(n)]
            yield {"call": "all_to_all_single", "ranks": n, "dtype": t, "split": split, "in": x}


def lists(rng):
    """Many tensors in one call."""
    for n in WORLDS:
        for t in ("float32", "int64"):
            x = [" | ".join(exact(rng, t, k) for k in (5, 1, 2)) for _ in range(n)]
            yield {"call": "all_reduce_coalesced", "ranks": n, "dtype": t, "op": "sum", "in": x}
            yield {"call": "all_gather_coalesced", "ranks": n, "dtype": t, "in": x}


def objects(_):
    """Objects of several sizes: torch pickles them, so they are strings here."""
    for n, group in [(n, None) for n in WORLDS] + [(3, [2, 0])]:
        members, root = sorted(group or range(n)), max(group or range(n))
        c = {"ranks": n, **({"group": group} if group else {})}
        each = [f"{r}:" + "ab" * r if r in members else "outside" for r in range(n)]
        some = [" | ".join(f"to {r}" for r in members) if r == root else None for r in range(n)]
        yield {"call": "broadcast_object_list", **c, "root": root,
               "in": ["one | zwei \u00f1 | 3" if r == root else None for r in range(n)]}
        yield {"call": "all_gather_object", **c, "in": each}
        yield {"call": "gather_object", **c, "root": root, "in": each}
        if not group:  # outsiders trip over a line of torch's
            yield {"call": "scatter_object_list", **c, "root": root, "in": some}


def empty(rng):
    """Tensors of no elements, where torch survives them."""
    for call in ("broadcast", "reduce", "all_reduce", "gather", "all_to_all_single", "scatter"):
        c = {"call": call, "ranks": 3, "dtype": "float32"}
        c.update({"op": "sum"} if "reduce" in call else {})
        c.update({} if "all" in call else {"root": 1})
        yield {**c, "in": [None, "", None] if call == "scatter" else [""] * 3}


def groups(rng):
    """new_group sorts its ranks, roots are ranks in the world, and outsiders see nothing."""
    for n, group in ((2, [1]), (3, [2, 0]), (4, [3, 1, 0])):
        root, c = group[0], {"ranks": n, "group": group, "dtype": "int32"}
        x = [exact(rng, "int32", 5) for _ in range(n)]
        whole = exact(rng, "int32", 5 * len(group))
        yield {"call": "new_group", "ranks": n, "group": group}
        yield {"call": "broadcast", **c, "root": root, "in": x}
        yield {"call": "all_reduce", **c, "op": "sum", "in": x}
        yield {"call": "reduce", **c, "op": "sum", "root": root, "in": x}
        yield {"call": "all_gather", **c, "in": x}
        yield {"call": "gather", **c, "root": root, "in": x}
        yield {"call": "scatter", **c, "root": root,
               "in": [whole if r == root else None for r in range(n)]}


def messages(rng):
    """Programs of messages."""
    for t in FORMATS:
        for k in SIZES:
            x = exact(rng, t, k)
            yield p2p([[f"send 1 7 {x}"], [f"recv 0 7 {k}"]], dtype=t)
    yield p2p([["send 1 0"], ["recv 0 0 0"]])
    one, two, three = text([1]), text([2]), text([3])
    # In order within a tag, in any order across them.
    yield p2p([[f"isend 1 1 {one}", f"isend 1 2 {two}", f"isend 1 1 {three}"],
               ["recv 0 2 1", "recv 0 1 1", "recv 0 1 1"]])
    yield p2p([["irecv 1 0 2", f"isend 1 0 {one} {two}"], [f"isend 0 0 {three} {one}", "irecv 0 0 2"]])
    for n in WORLDS[2:]:
        ring = [[f"isend {(r + 1) % n} 0 {text([r])}", f"irecv {(r - 1) % n} 0 1"] for r in range(n)]
        yield p2p(ring)
        yield p2p(ring, batch=True)
    # From any, one at a time: whoever is answered is who may send.
    yield p2p([["recv any 0 1", f"send 2 0 {one}", "recv any 0 1"], [f"send 0 0 {two}"],
               ["recv 0 0 1", f"send 0 0 {three}"]])
    yield p2p([[], [f"send 3 4 {one}"], [], ["recv any 4 1"]], group=[3, 1])


def p2p(steps, **more):
    c = {"call": "p2p", "ranks": len(steps), "dtype": "int64"}
    return {**c, **more, "steps": steps}


def regular(rng):
    """The calls that end well, which share a world a size."""
    kinds = (reductions, rounded, movements, splits, lists, objects, empty, groups, messages)
    return [case for kind in kinds for case in kind(rng)]


def alone():
    """The calls that end badly, or not as ours do: each has a world of its own."""
    x = [text([i + 1, i + 2, i + 3, i + 4], "float32") for i in range(3)]
    c = {"ranks": 3, "dtype": "float32"}
    sum_, nan = {"op": "sum"}, float("nan")
    yield {"call": "broadcast", **c, "root": 5, "in": x}
    yield {"call": "reduce", **c, **sum_, "root": 5, "in": x}
    yield {"call": "gather", **c, "root": 5, "in": x}
    yield {"call": "all_reduce", **c, "op": "band", "in": x}
    yield {"call": "reduce", **c, "op": "bxor", "root": 0, "in": x}
    yield {"call": "broadcast", **c, "group": [2, 0], "root": 1, "in": x}
    yield {"call": "all_to_all_single", **c, "in": x}
    yield {"call": "all_to_all_single", **c, "split": [[[2, 1, 0], [2, 1, 1]]] * 3, "in": x}
    yield {"call": "all_to_all_single", **c, "split": [[[2, 2], [2, 2]]] * 3, "in": x}
    yield {"call": "new_group", "ranks": 3, "group": [2, 7]}
    for given in (False, True):
        yield {"call": "gather", **c, "root": 0, "list": given, "in": x}
        yield {"call": "scatter", **c, "root": 0, "list": given,
               "in": [text([1, 2, 3], "float32"), None, None]}

    few = " | ".join(text([i], "float32") for i in (1, 2))
    yield {"call": "scatter", **c, "root": 0, "in": [few, None, None]}

    yield {"call": "reduce", **c, **sum_, "root": 1, "rule": "others keep theirs", "in": x}
    for op in ("min", "max"):
        spots = [text([nan if r == i else r for i in range(3)], "float32") for r in range(3)]
        yield {"call": "all_reduce", **c, "op": op, "rule": "NaN wins", "in": spots}
    yield {"call": "all_gather", **c, "rule": "nothing is no trouble", "in": ["", "", ""]}
    short = [text([1, 2], "float32")] + x[1:]
    yield {"call": "broadcast", **c, "root": 0, "rule": "counts agree", "in": short}
    one, two = text([1]), text([1, 2])
    yield p2p([[f"send 1 0 {one}"], ["recv 0 0 2"]], rule="counts agree")
    yield p2p([[f"send 1 0 {two}"], ["recv 0 0 1"]], rule="counts agree")
    yield p2p([[f"send 0 0 {one}"], []], rule="no message to oneself")
    yield p2p([["irecv 0 0 1"], []], rule="no message to oneself")
    for late, everyone in (([2], True), ([1, 3], True), ([1, 3], False)):
        yield {"call": "monitored_barrier", "ranks": 4, "late": late, "all": everyone,
               "rule": "all name the missing"}
