"""A round trip of Apache OpenDAL: opendal_fs.py URL ACCESS_KEY SECRET_KEY FILE TREE."""

import importlib.metadata
import sys

import opendal
from tree import files_below

URL, ACCESS, SECRET, BIG, TREE = sys.argv[1:]
# OpenDAL creates no buckets.
BUCKET = "opendal"
s3 = opendal.Operator(
    "s3",
    bucket=BUCKET,
    endpoint=URL,
    region="us-east-1",
    access_key_id=ACCESS,
    secret_access_key=SECRET,
)
big = open(BIG, "rb").read()
s3.write("big", big, chunk=8 << 20)
assert s3.read("big") == big
with s3.open("big", "rb") as file:
    file.seek(100_000_000)
    assert file.read() == big[100_000_000:]
s3.copy("big", "copy")
assert s3.read("copy") == big
files = files_below(TREE)
for name, content in files.items():
    s3.write("tree/" + name, content)
assert all(s3.read("tree/" + name) == content for name, content in files.items())
listed = [entry.path for entry in s3.scan("tree/")]
assert sorted(path[5:] for path in listed if path.endswith(".bin")) == sorted(files)
assert s3.stat("big").content_length == len(big)
s3.remove_all("/")
assert not list(s3.list("/"))
print("opendal", importlib.metadata.version("opendal"))
