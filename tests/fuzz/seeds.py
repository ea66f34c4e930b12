#!/usr/bin/env python3
"""Writes small seed corpora for the fuzz targets: seeds.py <folder>, one sub-folder a target.

Only the standard library is used; the two JPEG seeds are checked in beside this script.
"""
import gzip
import pathlib
import shutil
import struct
import sys
import zlib

here = pathlib.Path(__file__).parent
root = pathlib.Path(sys.argv[1])


def put(target, name, data):
    folder = root / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def idx(magic, sizes, values):
    return struct.pack(f">I{len(sizes)}I", magic, *sizes) + bytes(values)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, color, bits, channels, interlaced=0, extra=b""):
    row = b"\0" + bytes((x * 7) % 256 for x in range((width * channels * bits + 7) // 8))
    header = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra
            + chunk(b"IDAT", zlib.compress(row * height)) + chunk(b"IEND", b""))


images = idx(2051, [3, 4, 5], range(60))
labels = idx(2049, [3], [0, 1, 2])
put("idx_fuzz", "images", b"\2" + images)
put("idx_fuzz", "labels", b"\0" + labels)
put("idx_fuzz", "images.gz", b"\3" + gzip.compress(images, mtime=0))
put("idx_fuzz", "labels.gz", b"\1" + gzip.compress(labels, mtime=0))
put("idx_fuzz", "members.gz", b"\1" + gzip.compress(labels[:5], mtime=0) + gzip.compress(labels[5:], mtime=0))
put("cifar_fuzz", "ten", b"\0" + (b"\7" + bytes(range(256)) * 12) * 2)
put("cifar_fuzz", "hundred", b"\1" + b"\7\x63" + bytes(range(256)) * 12)
put("token_bin_fuzz", "raw", struct.pack("<4H", 1, 2, 50256, 4))
put("token_bin_fuzz", "v1", struct.pack("<3I", 20240520, 1, 3).ljust(1024, b"\0") + struct.pack("<3H", 1, 2, 3))
put("token_bin_fuzz", "v7", struct.pack("<3I", 20240801, 7, 2).ljust(1024, b"\0") + struct.pack("<2I", 1, 2))
put("image_decode_fuzz", "rgb.png", png(6, 5, 2, 8, 3))
put("image_decode_fuzz", "grey16.png", png(6, 5, 0, 16, 1))
put("image_decode_fuzz", "rgba.png", png(6, 5, 6, 8, 4))
put("image_decode_fuzz", "palette.png", png(6, 5, 3, 4, 1, extra=chunk(b"PLTE", bytes(range(48))) + chunk(b"tRNS", b"\x80\x10")))
put("image_decode_fuzz", "bits1.png", png(9, 5, 0, 1, 1))
for name in ("baseline.jpg", "progressive.jpg", "cmyk.jpg"):
    shutil.copy(here / "seeds" / name, root / "image_decode_fuzz" / name)
put("bpe_fuzz", "text", b"\0a a\naa aa\0Hello aaaa it's 42  \n\nna\xc3\xafve")
put("bpe_fuzz", "vocabulary", b'{"a":0,"b":1,"ab":2}\0#version: 0.2\na b\n\0ab')

header = (b'{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
          b'"b":{"dtype":"BOOL","shape":[1,3],"data_offsets":[8,11]}}')
put("safetensors_fuzz", "file", struct.pack("<Q", len(header)) + header + bytes(11))
put("safetensors_fuzz", "text", b"\x0b" + header)
put("safetensors_fuzz", "none", struct.pack("<Q", 8) + b"{}      ")
put("safetensors_fuzz", "empty", b'\x08{"s":{"dtype":"I64","shape":[],"data_offsets":[0,8]},'
    b'"z":{"data_offsets":[8,8],"shape":[0,4],"dtype":"BF16"}}')
