"""Reads a TensorBoard event file by the format's description alone: an object a line.

TFRecord framing: tensorflow/core/lib/io/record_writer.h. Protocol buffers: event.proto
and summary.proto of TensorFlow. Any mistake in the file is an exception.
"""

import json
import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


assert crc32c(b"123456789") == 0xE3069283  # RFC 3720's check value


def check(data, want):
    crc = crc32c(data)
    masked = (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
    assert masked == want, f"checksum {masked:#x}, file has {want:#x}"


def records(data):
    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        (crc,) = struct.unpack_from("<I", data, at + 8)
        check(data[at : at + 8], crc)
        body = data[at + 12 : at + 12 + length]
        assert len(body) == length, "the file ends too early"
        (crc,) = struct.unpack_from("<I", data, at + 12 + length)
        check(body, crc)
        yield body
        at += length + 16


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at += 1
        if not data[at - 1] & 0x80:
            return value, at
        shift += 7


def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = varint(data, at)
            if value >= 1 << 63:
                value -= 1 << 64
        elif wire == 1:
            (value,) = struct.unpack_from("<d", data, at)
            at += 8
        elif wire == 2:
            length, at = varint(data, at)
            value = data[at : at + length]
            assert len(value) == length
            at += length
        elif wire == 5:
            (value,) = struct.unpack_from("<f", data, at)
            at += 4
        else:
            raise ValueError(f"wire type {wire}")
        yield tag >> 3, value


def scalar(data):
    value = dict(fields(data))
    return value[1].decode(), value.get(2, 0.0)


with open(sys.argv[1], "rb") as f:
    for number, record in enumerate(records(f.read())):
        event = dict(fields(record))
        assert event[1] > 0, "no wall time"
        if number == 0:
            print(json.dumps({"version": event[3].decode()}))
            continue
        values = [scalar(v) for field, v in fields(event[5]) if field == 1]
        print(json.dumps({"step": event.get(2, 0), "values": dict(values)}))
