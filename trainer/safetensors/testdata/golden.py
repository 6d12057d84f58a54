#!/usr/bin/python3
"""Write the files that golden_test.go reads, from the format's description alone.

    /usr/bin/python3 trainer/safetensors/testdata/golden.py trainer/safetensors/testdata

needs nothing but Python. golden.safetensors has every element type, laid out as the
format's own library does: the largest types first, then by name, and a header
padded with spaces. shuffled.safetensors has the same tensors with the header's
keys and the bytes in another order each, no padding, and escapes in a name.
"""

import json
import struct
import sys

# name, type, struct's letter, shape, values
TENSORS = [
    ("u64", "U64", "Q", [1], [2**64 - 1]),
    ("i64", "I64", "q", [2], [-(2**63), 2**63 - 1]),
    ("f64", "F64", "d", [2, 2], [1.0, -0.0, 1e-300, float("inf")]),
    ("weight", "F32", "f", [2, 3], [0.0, 1.0, -2.5, 3.25, 1e-30, -1e30]),
    ("u32", "U32", "I", [1, 1, 1], [2**32 - 1]),
    ("i32", "I32", "i", [2], [-(2**31), 7]),
    ("bf16", "BF16", "H", [2], [0x3F80, 0xC020]),  # 1, -2.5
    ("half", "F16", "e", [3], [1.0, -2.5, 65504.0]),
    ("u16", "U16", "H", [], [65535]),
    ("i16", "I16", "h", [2], [-32768, 32767]),
    ("i8", "I8", "b", [2], [-128, 127]),
    ("u8", "U8", "B", [3], [0, 1, 255]),
    ("bool \u00e9\"<", "BOOL", "?", [2], [True, False]),
    ("empty", "BOOL", "?", [3, 0], []),
]
ORDER = ["U64", "I64", "F64", "F32", "U32", "I32", "BF16", "F16", "U16", "I16", "I8", "U8", "BOOL"]
METADATA = {"format": "pt", "made by": "golden.py"}


def write(path, laid, listed, pad, escape):
    """Lays the tensors of laid out, and lists them in the header as in listed."""
    offsets, data = {}, b""
    for name, _, letter, _, values in laid:
        p = struct.pack("<%d%s" % (len(values), letter), *values)
        offsets[name] = [len(data), len(data) + len(p)]
        data += p
    header = {}
    if pad:
        header["__metadata__"] = METADATA
    for name, kind, _, shape, _ in listed:
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": offsets[name]}
    if not pad:
        header["__metadata__"] = METADATA
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=escape).encode()
    if pad:
        text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


folder = sys.argv[1]
laid = sorted(TENSORS, key=lambda t: (ORDER.index(t[1]), t[0]))
write(folder + "/golden.safetensors", laid, laid, True, False)
write(folder + "/shuffled.safetensors", TENSORS[3:] + TENSORS[:3], TENSORS[::-1], False, True)
