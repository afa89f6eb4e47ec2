"""Recordings of many ranks that lie in tests/data."""

import io
import tarfile
from pathlib import Path

import zstandard

DATA = Path(__file__).parents[1] / "data" / "ranks"


def unpack_dlrm(folder: Path) -> Path:
    """The recordings of eight ranks, in this folder."""
    return unpack("dlrm", folder)


def unpack(name: str, folder: Path) -> Path:
    """The recordings of one job, in this folder."""
    packed = (DATA / f"{name}.tar.zst").read_bytes()
    with tarfile.open(fileobj=io.BytesIO(zstandard.ZstdDecompressor().decompress(packed))) as archive:
        archive.extractall(folder, filter="data")
    return folder
