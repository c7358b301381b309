"""A round trip of the MinIO SDK: minio_sdk.py URL ACCESS_KEY SECRET_KEY FILE TREE."""

import io
import sys
import urllib.request

import minio
from minio import Minio
from minio.commonconfig import ENABLED, ComposeSource, CopySource, Tags
from minio.deleteobjects import DeleteObject
from minio.versioningconfig import VersioningConfig
from tree import files_below

URL, ACCESS, SECRET, BIG, TREE = sys.argv[1:]
BUCKET = "minio-sdk"
scheme, host = URL.split("://")
client = Minio(host, access_key=ACCESS, secret_key=SECRET, secure=scheme == "https")


def get(key, **options):
    response = client.get_object(bucket_name=BUCKET, object_name=key, **options)
    try:
        return response.read()
    finally:
        response.close()
        response.release_conn()


def put(key, content, **options):
    stream = io.BytesIO(content)
    return client.put_object(
        bucket_name=BUCKET, object_name=key, data=stream, length=len(content), **options
    )


big = open(BIG, "rb").read()
client.make_bucket(bucket_name=BUCKET)
assert client.bucket_exists(bucket_name=BUCKET)
client.fput_object(bucket_name=BUCKET, object_name="big", file_path=BIG, part_size=10 << 20)
assert get("big") == big
assert get("big", offset=1000, length=500) == big[1000:1500]
# A stream of unknown length.
client.put_object(
    bucket_name=BUCKET, object_name="streamed", data=io.BytesIO(big), length=-1, part_size=8 << 20
)
assert get("streamed") == big
client.copy_object(bucket_name=BUCKET, object_name="copy", source=CopySource(BUCKET, "big"))
assert get("copy") == big
sources = [ComposeSource(BUCKET, "big"), ComposeSource(BUCKET, "copy")]
client.compose_object(bucket_name=BUCKET, object_name="composed", sources=sources)
assert get("composed") == big * 2

files = files_below(TREE)
for name, content in files.items():
    put("tree/" + name, content, metadata={"Name": "value"})
objects = client.list_objects(bucket_name=BUCKET, prefix="tree/", recursive=True)
assert {entry.object_name[5:]: entry.size for entry in objects} == {
    name: len(content) for name, content in files.items()
}
assert all(get("tree/" + name) == content for name, content in files.items())
folders = client.list_objects(bucket_name=BUCKET, prefix="tree/")
assert sum(entry.is_dir for entry in folders) == 20

tags = Tags.new_object_tags()
tags["key"] = "value"
client.set_object_tags(bucket_name=BUCKET, object_name="big", tags=tags)
assert client.get_object_tags(bucket_name=BUCKET, object_name="big") == tags
url = client.presigned_get_object(bucket_name=BUCKET, object_name="big")
assert urllib.request.urlopen(url).read() == big
url = client.presigned_put_object(bucket_name=BUCKET, object_name="presigned")
urllib.request.urlopen(urllib.request.Request(url, data=b"by URL", method="PUT"))
assert get("presigned") == b"by URL"

client.set_bucket_versioning(bucket_name=BUCKET, config=VersioningConfig(ENABLED))
ids = [put("v", text).version_id for text in (b"1", b"2")]
assert [get("v", version_id=version) for version in ids] == [b"1", b"2"]

every = client.list_objects(bucket_name=BUCKET, recursive=True, include_version=True)
deletes = [DeleteObject(entry.object_name, entry.version_id) for entry in every]
assert not list(client.remove_objects(bucket_name=BUCKET, delete_object_list=deletes))
client.remove_bucket(bucket_name=BUCKET)
print("minio", minio.__version__)
