"""A round trip of pyarrow: pyarrow_fs.py URL ACCESS_KEY SECRET_KEY FILE TREE."""

import os
import sys

import pyarrow
import pyarrow.dataset
import pyarrow.parquet
from pyarrow import fs
from tree import files_below

URL, ACCESS, SECRET, BIG, TREE = sys.argv[1:]
scheme, host = URL.split("://")
s3 = fs.S3FileSystem(
    access_key=ACCESS,
    secret_key=SECRET,
    endpoint_override=host,
    scheme=scheme,
    region="us-east-1",
    allow_bucket_creation=True,
    allow_bucket_deletion=True,
)
big = open(BIG, "rb").read()
s3.create_dir("pyarrow")
with s3.open_output_stream("pyarrow/big") as stream:
    stream.write(big)
with s3.open_input_file("pyarrow/big") as file:
    assert file.size() == len(big)
    assert file.read_at(500, 1000) == big[1000:1500]
    file.seek(0)
    assert file.read() == big
s3.copy_file("pyarrow/big", "pyarrow/copy")
s3.move("pyarrow/copy", "pyarrow/moved")
assert s3.open_input_stream("pyarrow/moved").read() == big
assert s3.get_file_info("pyarrow/copy").type == fs.FileType.NotFound

fs.copy_files(TREE, "pyarrow/tree", destination_filesystem=s3)
below = s3.get_file_info(fs.FileSelector("pyarrow/tree", recursive=True))
assert sum(entry.type == fs.FileType.File for entry in below) == 1000
os.mkdir("down")
fs.copy_files("pyarrow/tree", "down", source_filesystem=s3)
assert files_below("down") == files_below(TREE)

rows = pyarrow.table({"part": [n % 4 for n in range(100_000)], "n": range(100_000)})
pyarrow.dataset.write_dataset(
    rows, "pyarrow/data", format="parquet", partitioning=["part"], filesystem=s3
)
read = pyarrow.dataset.dataset("pyarrow/data", partitioning=["part"], filesystem=s3)
found = read.to_table(filter=pyarrow.dataset.field("part") == 3)
assert found.num_rows == 25_000
pyarrow.parquet.write_table(rows, "pyarrow/one.parquet", filesystem=s3)
assert pyarrow.parquet.read_table("pyarrow/one.parquet", filesystem=s3).equals(rows)

s3.delete_dir_contents("pyarrow")
assert not s3.get_file_info(fs.FileSelector("pyarrow", recursive=True))
s3.delete_dir("pyarrow")
print("pyarrow", pyarrow.__version__)
