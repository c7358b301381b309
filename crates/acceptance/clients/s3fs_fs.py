"""A round trip of s3fs: s3fs_fs.py URL ACCESS_KEY SECRET_KEY FILE TREE."""

import sys
import urllib.request

import s3fs
from tree import files_below

URL, ACCESS, SECRET, BIG, TREE = sys.argv[1:]
s3 = s3fs.S3FileSystem(key=ACCESS, secret=SECRET, endpoint_url=URL, version_aware=True)

big = open(BIG, "rb").read()
s3.mkdir("s3fs")
s3.put_file(BIG, "s3fs/big")
assert s3.cat_file("s3fs/big") == big
assert s3.cat_file("s3fs/big", start=1000, end=1500) == big[1000:1500]
with s3.open("s3fs/written", "wb", block_size=8 << 20) as file:
    file.write(big)
with s3.open("s3fs/written", "rb") as file:
    file.seek(100_000_000)
    assert file.read() == big[100_000_000:]
with s3.open("s3fs/appended", "wb") as file:
    file.write(b"first")
with s3.open("s3fs/appended", "ab") as file:
    file.write(b"second")
assert s3.cat_file("s3fs/appended") == b"firstsecond"
s3.copy("s3fs/big", "s3fs/copy")
s3.mv("s3fs/copy", "s3fs/moved")
assert s3.cat_file("s3fs/moved") == big
assert not s3.exists("s3fs/copy")

s3.put(TREE, "s3fs/tree", recursive=True)
s3.invalidate_cache()
assert len(s3.find("s3fs/tree")) == 1000
assert len(s3.ls("s3fs/tree")) == 20
assert len(s3.glob("s3fs/tree/**/*.bin")) == 1000
s3.get("s3fs/tree", "down", recursive=True)
assert files_below("down") == files_below(TREE)
s3.setxattr("s3fs/big", key="value")
assert s3.getxattr("s3fs/big", "key") == "value"
s3.put_tags("s3fs/big", {"tag": "value"})
assert s3.get_tags("s3fs/big") == {"tag": "value"}
assert urllib.request.urlopen(s3.url("s3fs/big")).read() == big

s3.make_bucket_versioned("s3fs", True)
for text in b"1", b"2":
    s3.pipe_file("s3fs/v", text)
ids = [version["VersionId"] for version in s3.object_version_info("s3fs/v")]
assert [s3.cat_file("s3fs/v", version_id=version) for version in ids] == [b"2", b"1"]
s3.rm("s3fs", recursive=True)
assert not s3.exists("s3fs")
print("s3fs", s3fs.__version__)
