#!/usr/bin/python3
"""Write, with NumPy, the files that golden_test.go reads.

    /usr/bin/python3 trainer/data/npy/testdata/golden.py trainer/data/npy/testdata

needs Debian's python3-numpy. stored.npz and packed.npz have the same arrays: of each
type values(n) in a shape, little-endian and C's order unless the name says other.
v1.npy to v3.npy are one array in the three versions. refused.npz is what has no
place in a tensor.
"""

import sys
import warnings
import zipfile

import numpy as np
from numpy.lib import format

warnings.filterwarnings("ignore")
folder = sys.argv[1]


def values(dtype, n):
    """0, 1, 2 … for unsigned types, −2, −1, 0 … for the others."""
    kind = np.dtype(dtype).kind
    x = np.arange(n)
    if kind == "b":
        return (x % 2 == 1).astype(dtype)
    if kind == "f":
        x = x / 4
    if kind != "u":
        x = x - 2
    return x.astype(dtype)


arrays = {}
for t in "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 ?".split():
    name = "bool" if t == "?" else t
    arrays[name] = values(t, 6).reshape(2, 3)
    if np.dtype(t).itemsize > 1:
        arrays["big_" + name] = values(">" + t, 6).reshape(2, 3)
arrays["fortran"] = np.asfortranarray(values("i2", 24).reshape(2, 3, 4))
arrays["big_fortran"] = np.asfortranarray(values(">f8", 6).reshape(2, 3))
arrays["scalar"] = np.float32(1.5).reshape(())
arrays["vector"] = values("f4", 5)
arrays["empty"] = np.zeros((0, 3), "u1")

# With dates of their own, archives would differ from run to run.
for name, method in [("stored", zipfile.ZIP_STORED), ("packed", zipfile.ZIP_DEFLATED)]:
    with zipfile.ZipFile("%s/%s.npz" % (folder, name), "w", method) as z:
        for key, x in arrays.items():
            info = zipfile.ZipInfo(key + ".npy")
            info.compress_type = method
            with z.open(info, "w") as f:
                format.write_array(f, np.asanyarray(x))

for v in (1, 2, 3):
    with open("%s/v%d.npy" % (folder, v), "wb") as f:
        format.write_array(f, values("f4", 6).reshape(2, 3), version=(v, 0))

refused = {
    "complex": np.zeros(2, "c8"),
    "text": np.array(["a", "bc"]),
    "bytes": np.array([b"a", b"bc"]),
    "date": np.array(["2020-01-01"], "M8[D]"),
    "record": np.zeros(2, [("a", "f4"), ("b", "i4")]),
    "object": np.array([{}, 1], object),
    "long": np.zeros(2, np.longdouble),
}
with zipfile.ZipFile(folder + "/refused.npz", "w") as z:
    for key, x in refused.items():
        with z.open(zipfile.ZipInfo(key + ".npy"), "w") as f:
            format.write_array(f, x, allow_pickle=True)
