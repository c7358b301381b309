"""A round trip of boto3 with checksums by the AWS CRT.

usage: boto3_crt.py URL ACCESS_KEY SECRET_KEY FILE TREE
"""

import io
import sys
import urllib.request

import awscrt
import boto3
from tree import files_below

URL, ACCESS, SECRET, BIG, TREE = sys.argv[1:]
BUCKET = "boto3"
CHECKSUMS = ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"]

server = {"endpoint_url": URL, "aws_access_key_id": ACCESS, "aws_secret_access_key": SECRET}
s3 = boto3.client("s3", **server)


def get(key, **options):
    return s3.get_object(Bucket=BUCKET, Key=key, **options)["Body"].read()


big = open(BIG, "rb").read()
s3.create_bucket(Bucket=BUCKET)
s3.upload_file(BIG, BUCKET, "big")
received = io.BytesIO()
s3.download_fileobj(BUCKET, "big", received)
assert received.getvalue() == big
s3.copy({"Bucket": BUCKET, "Key": "big"}, BUCKET, "copy")
assert get("copy") == big
assert get("copy", Range="bytes=1000-1999") == big[1000:2000]

for checksum in CHECKSUMS:
    s3.put_object(Bucket=BUCKET, Key=checksum, Body=b"x", ChecksumAlgorithm=checksum)
    arguments = {"ChecksumAlgorithm": checksum}
    s3.upload_file(BIG, BUCKET, checksum + " parts", ExtraArgs=arguments)
    for key in checksum, checksum + " parts":
        head = s3.head_object(Bucket=BUCKET, Key=key, ChecksumMode="ENABLED")
        assert head.get("Checksum" + checksum), head
        get(key, ChecksumMode="ENABLED")

files = files_below(TREE)
for name, content in files.items():
    s3.put_object(Bucket=BUCKET, Key="tree/" + name, Body=content)
pages = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="tree/")
listed = {entry["Key"][5:]: entry["Size"] for page in pages for entry in page["Contents"]}
assert listed == {name: len(content) for name, content in files.items()}
assert all(get("tree/" + name) == content for name, content in files.items())

url = s3.generate_presigned_url("get_object", Params={"Bucket": BUCKET, "Key": "big"})
assert urllib.request.urlopen(url).read() == big

s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
ids = [s3.put_object(Bucket=BUCKET, Key="v", Body=text)["VersionId"] for text in (b"1", b"2")]
assert [get("v", VersionId=version) for version in ids] == [b"1", b"2"]

bucket = boto3.resource("s3", **server).Bucket(BUCKET)
bucket.object_versions.delete()
bucket.delete()
print("boto3", boto3.__version__, "awscrt", awscrt.__version__)
