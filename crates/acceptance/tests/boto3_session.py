"""A boto3 session against an S3 endpoint, with assertions.

usage: boto3_session.py URL [ACCESS_KEY SECRET_KEY]

Without keys requests are unsigned. If the host of the URL is localhost, the client sends requests
to the hosts of buckets, such as session.localhost. Each function named check_... runs in order.
"""

import base64
import hashlib
import hmac
import io
import socket
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from urllib.parse import quote, urlencode

import boto3
from boto3.s3.transfer import TransferConfig
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError

URL, KEYS = sys.argv[1], sys.argv[2:]
# Addresses have no host names of buckets.
STYLE = "virtual" if "//localhost:" in URL else "path"
BUCKET = "session"
MIB = 1 << 20
MIDNIGHT = datetime(2017, 9, 27, tzinfo=timezone.utc)


def client(keys=KEYS):
    access, secret = keys or (None, None)
    config = Config(
        signature_version="s3v4" if keys else UNSIGNED,
        s3={"addressing_style": STYLE},
        retries={"total_max_attempts": 1},
    )
    return boto3.client(
        "s3",
        endpoint_url=URL,
        region_name="us-east-1",
        aws_access_key_id=access,
        aws_secret_access_key=secret,
        config=config,
    )


def resolve(host, *rest, of_system=socket.getaddrinfo, **more):
    """Resolves all names below localhost, as RFC 6761 requires."""
    name = host.decode() if isinstance(host, bytes) else host
    return of_system("127.0.0.1" if name.endswith("localhost") else host, *rest, **more)


socket.getaddrinfo = resolve
s3 = client()


@contextmanager
def raises(code, status):
    """Asserts that the block fails with this error code and status."""
    try:
        yield
    except ClientError as error:
        actual_code = error.response["Error"]["Code"]
        actual_status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        # A response to HEAD has no body, so boto3 reports only the status.
        assert actual_code in (code, str(status)), f"{actual_code}, not {code}: {error}"
        assert actual_status == status, f"{actual_status}, not {status}: {error}"
    else:
        raise AssertionError(f"no error, expected {code}")


def content(count):
    """Returns bytes in which all ranges differ."""
    words = (hashlib.sha256(b"%d" % at).digest() for at in range(-(-count // 32)))
    return b"".join(words)[:count]


def put(key, body=b"x", **more):
    return s3.put_object(Bucket=BUCKET, Key=key, Body=body, **more)


def get(key, **more):
    return s3.get_object(Bucket=BUCKET, Key=key, **more)


def head(key, **more):
    return s3.head_object(Bucket=BUCKET, Key=key, **more)


def empty_bucket():
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
        keys = [{"Key": line["Key"]} for line in page.get("Contents", [])]
        if keys:
            s3.delete_objects(Bucket=BUCKET, Delete={"Objects": keys, "Quiet": True})


def md5(body):
    return hashlib.md5(body).hexdigest()


def check_buckets():
    s3.create_bucket(Bucket="another.bucket-1")
    names = [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]
    assert names == ["another.bucket-1", BUCKET], names
    s3.head_bucket(Bucket=BUCKET)
    assert s3.get_bucket_location(Bucket=BUCKET)["LocationConstraint"] in (None, "us-east-1")
    assert "Status" not in s3.get_bucket_versioning(Bucket=BUCKET)
    s3.create_bucket(Bucket=BUCKET)  # It exists: nothing changes.
    s3.put_object(Bucket="another.bucket-1", Key="here", Body=b"")
    with raises("BucketNotEmpty", 409):
        s3.delete_bucket(Bucket="another.bucket-1")
    s3.delete_object(Bucket="another.bucket-1", Key="here")
    s3.delete_bucket(Bucket="another.bucket-1")
    with raises("InvalidBucketName", 400):
        s3.create_bucket(Bucket="Not_A_Bucket")


def check_unknown_bucket():
    with raises("NoSuchBucket", 404):
        s3.head_bucket(Bucket="unknown")
    with raises("NoSuchBucket", 404):
        s3.list_objects_v2(Bucket="unknown")
    with raises("NoSuchBucket", 404):
        s3.put_object(Bucket="unknown", Key="key", Body=b"x")
    with raises("NoSuchBucket", 404):
        s3.get_object(Bucket="unknown", Key="key")
    with raises("NoSuchBucket", 404):
        s3.create_multipart_upload(Bucket="unknown", Key="key")
    with raises("NoSuchBucket", 404):
        s3.delete_bucket(Bucket="unknown")


def check_put_get_head_delete():
    for count in (0, 1, 1000, MIB, 5 * MIB + 1):
        body = content(count)
        etag = put("object", body)["ETag"]
        assert etag == f'"{md5(body)}"', etag
        response = get("object")
        assert response["Body"].read() == body
        assert response["ETag"] == etag and response["ContentLength"] == count
        metadata = head("object")
        assert metadata["ETag"] == etag and metadata["ContentLength"] == count
        age = datetime.now(timezone.utc) - metadata["LastModified"]
        assert timedelta(seconds=-2) < age < timedelta(minutes=1), age
    s3.delete_object(Bucket=BUCKET, Key="object")
    with raises("NoSuchKey", 404):
        get("object")
    with raises("NoSuchKey", 404):
        head("object")
    s3.delete_object(Bucket=BUCKET, Key="object")


def check_ranges():
    for count in (1000, 5 * MIB):
        body = content(count)
        put("ranged", body)
        ranges = {
            "bytes=0-9": (0, 10),
            "bytes=10-": (10, count),
            "bytes=-7": (count - 7, count),
            f"bytes={count - 1}-": (count - 1, count),
            f"bytes=5-{count + 100}": (5, count),
            f"bytes=-{count + 1}": (0, count),
            f"bytes={count // 3}-{count // 2}": (count // 3, count // 2 + 1),
        }
        for requested, (first, end) in ranges.items():
            response = get("ranged", Range=requested)
            assert response["Body"].read() == body[first:end], requested
            assert response["ResponseMetadata"]["HTTPStatusCode"] == 206
            span = f"bytes {first}-{end - 1}/{count}"
            assert response["ContentRange"] == span, response["ContentRange"]
        with raises("InvalidRange", 416):
            get("ranged", Range=f"bytes={count}-")
    put("ranged", b"")
    with raises("InvalidRange", 416):
        get("ranged", Range="bytes=0-0")


def check_conditional_reads():
    etag = put("conditional")["ETag"]
    stored = head("conditional")["LastModified"]
    before, after = stored - timedelta(days=1), stored + timedelta(days=1)
    for read in (get, head):
        read("conditional", IfMatch=etag)
        read("conditional", IfNoneMatch='"0123456789abcdef0123456789abcdef"')
        read("conditional", IfModifiedSince=before)
        read("conditional", IfUnmodifiedSince=after)
        with raises("PreconditionFailed", 412):
            read("conditional", IfMatch='"0123456789abcdef0123456789abcdef"')
        with raises("PreconditionFailed", 412):
            read("conditional", IfUnmodifiedSince=before)
        with raises("304", 304):
            read("conditional", IfNoneMatch=etag)
        with raises("304", 304):
            read("conditional", IfModifiedSince=stored)


def check_conditional_writes():
    first = put("once", b"first", IfNoneMatch="*")["ETag"]
    with raises("PreconditionFailed", 412):
        put("once", b"second", IfNoneMatch="*")
    assert get("once")["Body"].read() == b"first"
    put("once", b"third", IfMatch=first)
    with raises("PreconditionFailed", 412):
        put("once", b"fourth", IfMatch=first)
    assert get("once")["Body"].read() == b"third"
    with raises("NoSuchKey", 404):
        put("never", b"x", IfMatch=first)


def check_conditional_deletes():
    etag = put("deleted", b"hello")["ETag"]
    stored = s3.head_object(Bucket=BUCKET, Key="deleted")["LastModified"]
    with raises("PreconditionFailed", 412):
        s3.delete_object(Bucket=BUCKET, Key="deleted", IfMatchSize=4)
    with raises("PreconditionFailed", 412):
        s3.delete_object(Bucket=BUCKET, Key="deleted", IfMatchLastModifiedTime=MIDNIGHT)
    listed = [{"Key": "deleted", "ETag": '"0123456789abcdef0123456789abcdef"'}]
    outcome = s3.delete_objects(Bucket=BUCKET, Delete={"Objects": listed})
    assert outcome["Errors"][0]["Code"] == "PreconditionFailed", outcome
    assert get("deleted")["Body"].read() == b"hello"
    s3.delete_object(Bucket=BUCKET, Key="deleted", IfMatch=etag, IfMatchLastModifiedTime=stored)
    with raises("NoSuchKey", 404):
        get("deleted")


def check_metadata():
    given = {
        "ContentType": "text/x-haul; charset=utf-8",
        "CacheControl": "max-age=3600",
        "ContentDisposition": 'attachment; filename="a b.txt"',
        "ContentEncoding": "identity-like",
        "ContentLanguage": "de, en",
        "Metadata": {"colour": "dark blue", "number": "7", "empty": ""},
    }
    put("described", b"x", **given)
    for response in (head("described"), get("described")):
        for name, value in given.items():
            assert response[name] == value, (name, response.get(name))
    changed = get("described", ResponseContentType="a/b", ResponseCacheControl="no-store")
    assert (changed["ContentType"], changed["CacheControl"]) == ("a/b", "no-store")
    put("described", b"x")
    assert head("described")["Metadata"] == {}
    assert head("described")["ContentType"].endswith("/octet-stream")


UNUSUAL_KEYS = [
    "..",
    "../../etc/passwd",
    "./dot",
    "a/../b",
    "a/./b",
    "a//b",
    "/leading",
    "trailing/",
    "%2e%2e/%2F",
    "with space",
    " ",
    "plus+and%percent",
    "amp&lt<gt>quote\"apostrophe'",
    "question?hash#semi;colon:",
    "back\\slash",
    "new\nline",
    "carriage\rreturn",
    "tab\tbell\x07",
    "umlaut-äöü-日本語-😀",
    "a\u0308",
    "\u00e4",
    "\ufffd\uffff",
    "brackets[]{}()|^`$*!@=,~",
    "a" * 1024,
    "ä" * 512,
]


def check_unusual_keys():
    empty_bucket()
    for key in UNUSUAL_KEYS:
        put(key, key.encode())
    for key in UNUSUAL_KEYS:
        assert get(key)["Body"].read() == key.encode(), repr(key)
        assert head(key)["ContentLength"] == len(key.encode()), repr(key)
    assert listed_v2() == sorted(UNUSUAL_KEYS, key=str.encode)
    for key in UNUSUAL_KEYS:
        copied = s3.copy_object(
            Bucket=BUCKET, Key="copy", CopySource={"Bucket": BUCKET, "Key": key}
        )
        assert copied["CopyObjectResult"]["ETag"] == f'"{md5(key.encode())}"', repr(key)
    # Keys that XML cannot represent are deleted one by one.
    in_xml = [key for key in UNUSUAL_KEYS if not set(key) & set("\r\x07\uffff")]
    deleted = s3.delete_objects(
        Bucket=BUCKET, Delete={"Objects": [{"Key": key} for key in in_xml]}
    )
    assert [line["Key"] for line in deleted["Deleted"]] == in_xml, deleted
    for key in set(UNUSUAL_KEYS) - set(in_xml):
        s3.delete_object(Bucket=BUCKET, Key=key)
    assert listed_v2() == ["copy"], listed_v2()


def check_invalid_keys():
    with raises("KeyTooLongError", 400):
        put("k" * 5000)
    with raises("KeyTooLongError", 400):
        put("k" * 1025)
    with raises("InvalidArgument", 400):
        put("a\0b")


def listed_v2(**more):
    """Returns keys and common prefixes, in the order of the pages."""
    names = []
    more = {"Bucket": BUCKET, **more}
    while True:
        page = s3.list_objects_v2(**more)
        lines = [line["Key"] for line in page.get("Contents", [])]
        lines += [line["Prefix"] for line in page.get("CommonPrefixes", [])]
        assert page["KeyCount"] == len(lines) <= more.get("MaxKeys", 1000)
        names += sorted(lines, key=str.encode)
        if not page["IsTruncated"]:
            return names
        more["ContinuationToken"] = page["NextContinuationToken"]


def listed_v1(**more):
    names = []
    more = {"Bucket": BUCKET, **more}
    while True:
        page = s3.list_objects(**more)
        lines = [line["Key"] for line in page.get("Contents", [])]
        lines += [line["Prefix"] for line in page.get("CommonPrefixes", [])]
        names += sorted(lines, key=str.encode)
        if not page["IsTruncated"]:
            return names
        more["Marker"] = page.get("NextMarker", names[-1])


def expected(keys, prefix, delimiter, after=""):
    """Returns the expected listing."""
    names = set()
    for key in (key for key in keys if key.startswith(prefix)):
        rest = key[len(prefix) :]
        at = rest.find(delimiter) if delimiter else -1
        names.add(key if at < 0 else prefix + rest[: at + len(delimiter)])
    return sorted((name for name in names if name.encode() > after.encode()), key=str.encode)


LISTED = ["a", "a/1", "a/2/x", "a/2/y", "a/", "a//", "ab", "b/ä/1", "b/ä/2", "b/😀", "c d+e%f", "z"]


def check_listings():
    empty_bucket()
    for key in LISTED:
        put(key, key.encode())
    for prefix in ("", "a", "a/", "a/2", "b/ä", "c d+", "nothing"):
        for delimiter in ("", "/", "/2", "+"):
            names = expected(LISTED, prefix, delimiter)
            for limit in (1, 2, 5, 1000):
                request = {"Prefix": prefix, "Delimiter": delimiter, "MaxKeys": limit}
                assert listed_v2(**request) == names, (request, listed_v2(**request), names)
                assert listed_v1(**request) == names, (request, listed_v1(**request), names)
    for after in ("", "a", "a/2", "b/", "c", "zz"):
        names = expected(LISTED, "", "", after)
        assert listed_v2(StartAfter=after) == names, after
        assert listed_v1(Marker=after) == names, after
    assert s3.list_objects_v2(Bucket=BUCKET, MaxKeys=0)["KeyCount"] == 0
    for line in s3.list_objects_v2(Bucket=BUCKET)["Contents"]:
        body = line["Key"].encode()
        assert (line["Size"], line["ETag"]) == (len(body), f'"{md5(body)}"'), line


def start(key, **more):
    return s3.create_multipart_upload(Bucket=BUCKET, Key=key, **more)["UploadId"]


def upload_part(key, upload, number, body, **more):
    request = {"Bucket": BUCKET, "Key": key, "UploadId": upload, "PartNumber": number}
    response = s3.upload_part(Body=body, **request, **more)
    return {"PartNumber": number, "ETag": response["ETag"]}


def complete(key, upload, parts, **more):
    return s3.complete_multipart_upload(
        Bucket=BUCKET, Key=key, UploadId=upload, MultipartUpload={"Parts": parts}, **more
    )


def check_multipart():
    key, body = "in parts/a b", content(11 * MIB)
    pieces = [body[: 5 * MIB], body[5 * MIB : 10 * MIB], body[10 * MIB :]]
    upload = start(key, ContentType="a/b", Metadata={"colour": "red"})
    upload_part(key, upload, 2, b"to be replaced")
    parts = [upload_part(key, upload, at, piece) for at, piece in enumerate(pieces, 1)]
    assert [part["ETag"] for part in parts] == [f'"{md5(piece)}"' for piece in pieces]
    with raises("NoSuchKey", 404):
        head(key)

    request = {"Bucket": BUCKET, "Key": key, "UploadId": upload}
    pages = s3.get_paginator("list_parts").paginate(**request, PaginationConfig={"PageSize": 2})
    listed = [part for page in pages for part in page["Parts"]]
    assert [part["Size"] for part in listed] == [len(piece) for piece in pieces], listed
    assert [part["ETag"] for part in listed] == [part["ETag"] for part in parts]
    uploads = s3.list_multipart_uploads(Bucket=BUCKET)["Uploads"]
    assert [(line["Key"], line["UploadId"]) for line in uploads] == [(key, upload)]

    with raises("InvalidPartOrder", 400):
        complete(key, upload, [parts[1], parts[0], parts[2]])
    with raises("InvalidPart", 400):
        complete(key, upload, [parts[0], {"PartNumber": 2, "ETag": parts[0]["ETag"]}])
    with raises("InvalidPart", 400):
        complete(key, upload, [parts[0], {"PartNumber": 4, "ETag": parts[0]["ETag"]}])
    etag = complete(key, upload, parts)["ETag"]
    whole = hashlib.md5(b"".join(hashlib.md5(piece).digest() for piece in pieces)).hexdigest()
    assert etag == f'"{whole}-3"', etag
    response = get(key)
    assert response["Body"].read() == body and response["ETag"] == etag
    assert response["ContentType"] == "a/b" and response["Metadata"] == {"colour": "red"}
    across = get(key, Range=f"bytes={5 * MIB - 3}-{5 * MIB + 2}")["Body"].read()
    assert across == body[5 * MIB - 3 : 5 * MIB + 3]
    second = get(key, PartNumber=2)
    assert second["Body"].read() == pieces[1] and second["PartsCount"] == 3
    assert s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []) == []


def check_invalid_multipart():
    upload = start("never")
    small = [upload_part("never", upload, number, b"small") for number in (1, 2)]
    with raises("EntityTooSmall", 400):
        complete("never", upload, small)
    s3.abort_multipart_upload(Bucket=BUCKET, Key="never", UploadId=upload)
    with raises("NoSuchUpload", 404):
        upload_part("never", upload, 1, b"x")
    with raises("NoSuchUpload", 404):
        s3.list_parts(Bucket=BUCKET, Key="never", UploadId=upload)
    with raises("NoSuchUpload", 404):
        complete("never", upload, small)
    with raises("NoSuchUpload", 404):
        s3.abort_multipart_upload(Bucket=BUCKET, Key="never", UploadId="no-such-upload")
    with raises("NoSuchKey", 404):
        head("never")


def check_managed_transfers():
    body = content(20 * MIB + 7)
    parts = TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB)
    s3.upload_fileobj(io.BytesIO(body), BUCKET, "managed", Config=parts)
    s3.copy({"Bucket": BUCKET, "Key": "managed"}, BUCKET, "managed copy", Config=parts)
    for key in ("managed", "managed copy"):
        back = io.BytesIO()
        s3.download_fileobj(BUCKET, key, back, Config=parts)
        assert back.getvalue() == body, key


def check_copies():
    body = content(5 * MIB)
    etag = put("from here", body, ContentType="a/b", Metadata={"colour": "red"})["ETag"]
    source = {"Bucket": BUCKET, "Key": "from here"}
    response = s3.copy_object(Bucket=BUCKET, Key="to there", CopySource=source)
    assert response["CopyObjectResult"]["ETag"] == etag
    there = get("to there")
    assert there["Body"].read() == body
    assert (there["ContentType"], there["Metadata"]) == ("a/b", {"colour": "red"})

    new = {"ContentType": "c/d", "Metadata": {"shape": "round"}, "MetadataDirective": "REPLACE"}
    s3.copy_object(Bucket=BUCKET, Key="to there", CopySource=source, **new)
    metadata = head("to there")
    assert (metadata["ContentType"], metadata["Metadata"]) == ("c/d", {"shape": "round"})
    s3.copy_object(Bucket=BUCKET, Key="from here", CopySource=source, **new)
    assert head("from here")["Metadata"] == {"shape": "round"}
    s3.delete_object(Bucket=BUCKET, Key="from here")
    assert get("to there")["Body"].read() == body

    with raises("NoSuchKey", 404):
        s3.copy_object(Bucket=BUCKET, Key="to there", CopySource=source)
    source["Key"] = "to there"
    with raises("InvalidRequest", 400):
        s3.copy_object(Bucket=BUCKET, Key="to there", CopySource=source)
    with raises("PreconditionFailed", 412):
        s3.copy_object(
            Bucket=BUCKET, Key="x", CopySource=source, CopySourceIfNoneMatch=etag
        )


def check_delete_many():
    empty_bucket()
    keys = [f"many/{number:04}" for number in range(1001)]
    for key in keys:
        put(key)
    objects = [{"Key": key} for key in keys]
    with raises("MalformedXML", 400):
        s3.delete_objects(Bucket=BUCKET, Delete={"Objects": objects})
    assert len(listed_v2()) == 1001
    response = s3.delete_objects(
        Bucket=BUCKET, Delete={"Objects": [{"Key": "missing"}, *objects[:999]]}
    )
    assert len(response["Deleted"]) == 1000 and "Errors" not in response
    quiet = s3.delete_objects(Bucket=BUCKET, Delete={"Objects": objects[999:], "Quiet": True})
    assert "Deleted" not in quiet and "Errors" not in quiet
    assert listed_v2() == []


def checksum_algorithms():
    try:
        import awscrt  # noqa: F401 (boto3 needs it for these two)
    except ImportError:
        print("  without CRC32C and CRC64NVME: boto3 has no awscrt")
        return ["CRC32", "SHA1", "SHA256"]
    return ["CRC32", "SHA1", "SHA256", "CRC32C", "CRC64NVME"]


def check_checksums():
    body = content(5 * MIB + 3)
    for kind in checksum_algorithms():
        name = f"Checksum{kind}"
        given = put("summed", body, ChecksumAlgorithm=kind)[name]
        response = get("summed", ChecksumMode="ENABLED")
        assert response["Body"].read() == body and response[name] == given, kind
        assert head("summed", ChecksumMode="ENABLED")[name] == given, kind
        wrong = base64.b64encode(bytes(len(base64.b64decode(given)))).decode()
        with raises("BadDigest", 400):
            put("summed", b"something else", **{name: wrong})
        assert head("summed")["ContentLength"] == len(body)

        upload = start("summed in parts", ChecksumAlgorithm=kind)
        part = upload_part("summed in parts", upload, 1, body, ChecksumAlgorithm=kind)
        with raises("BadDigest", 400):
            upload_part("summed in parts", upload, 2, b"x", **{name: wrong})
        complete("summed in parts", upload, [{**part, name: given}])
        assert get("summed in parts")["Body"].read() == body


def check_wrong_md5():
    wrong = base64.b64encode(hashlib.md5(b"else").digest()).decode()
    right = base64.b64encode(hashlib.md5(b"body").digest()).decode()
    put("digested", b"body", ContentMD5=right)
    with raises("BadDigest", 400):
        put("digested", b"other", ContentMD5=wrong)
    with raises("InvalidDigest", 400):
        put("digested", b"other", ContentMD5="not a digest")
    assert get("digested")["Body"].read() == b"body"


def check_signatures():
    if not KEYS:
        return
    put("signed", b"signed")
    request = {"Bucket": BUCKET, "Key": "signed"}
    with raises("SignatureDoesNotMatch", 403):
        client((KEYS[0], "wrong")).get_object(**request)
    with raises("InvalidAccessKeyId", 403):
        client(("wrong", KEYS[1])).get_object(**request)
    with raises("AccessDenied", 403):
        client(()).get_object(**request)
    with raises("AccessDenied", 403):
        client(()).put_object(**request, Body=b"x")
    with raises("AccessDenied", 403):
        client(()).list_buckets()
    assert get("signed")["Body"].read() == b"signed"


def fetch(url, method="GET", body=None):
    request = urllib.request.Request(url, data=body, method=method)
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def presigned(call, key, **more):
    return s3.generate_presigned_url(call, Params={"Bucket": BUCKET, "Key": key}, **more)


def presigned_at(key, when, expires_s=3600):
    """Returns a presigned URL signed at a given time, which boto3 cannot create."""
    host, path = URL.partition("://")[2], f"/{BUCKET}/{quote(key)}"
    time = when.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{time[:8]}/us-east-1/s3/aws4_request"
    query = urlencode(
        {
            "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
            "X-Amz-Credential": f"{KEYS[0]}/{scope}",
            "X-Amz-Date": time,
            "X-Amz-Expires": expires_s,
            "X-Amz-SignedHeaders": "host",
        }
    )
    request = f"GET\n{path}\n{query}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD"
    digest = hashlib.sha256(request.encode()).hexdigest()
    key = f"AWS4{KEYS[1]}".encode()
    for word in (*scope.split("/"), f"AWS4-HMAC-SHA256\n{time}\n{scope}\n{digest}"):
        key = hmac.digest(key, word.encode(), "sha256")
    return f"{URL}{path}?{query}&X-Amz-Signature={key.hex()}"


def check_presigned_urls():
    if not KEYS:
        return
    key = "presigned/a b+ä"
    assert fetch(presigned("put_object", key), "PUT", b"body")[0] == 200
    url = presigned("get_object", key)
    assert fetch(url) == (200, b"body")
    status, body = fetch(url.replace("presigned", "elsewhere"))
    assert status == 403 and b"SignatureDoesNotMatch" in body, body
    status, body = fetch(url, "DELETE")
    assert status == 403 and b"SignatureDoesNotMatch" in body, body
    now = datetime.now(timezone.utc)
    assert fetch(presigned_at(key, now - timedelta(minutes=50)))[0] == 200
    status, body = fetch(presigned_at(key, now - timedelta(minutes=70)))
    assert status == 403 and b"AccessDenied" in body, body


def rule(rule_id="rule", prefix="", days=1, **more):
    """Returns a lifecycle rule."""
    filtered = {"ID": rule_id, "Status": "Enabled", "Filter": {"Prefix": prefix}}
    return {**filtered, "Expiration": {"Days": days}, **more}


def put_rules(*rules, bucket=BUCKET):
    configuration = {"Rules": list(rules)}
    s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration=configuration)


def check_lifecycle_rules_are_stored():
    def stored():
        return s3.get_bucket_lifecycle_configuration(Bucket=BUCKET)["Rules"]

    with raises("NoSuchLifecycleConfiguration", 404):
        stored()
    legacy = {"ID": "b", "Status": "Disabled", "Prefix": "old/"}
    sizes = {"Prefix": "x/", "ObjectSizeGreaterThan": 500, "ObjectSizeLessThan": 64000}
    rules = [
        rule("a", "logs/", 30),
        {**legacy, "Expiration": {"Date": MIDNIGHT}},
        {
            "ID": "c",
            "Status": "Enabled",
            "Filter": {},
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 2},
        },
        rule("d", Filter={"And": sizes}),
        rule("e", Filter={"ObjectSizeGreaterThan": 1}),
        rule("f", Filter={"Tag": {"Key": "k", "Value": "v"}}),
        rule("g", Filter={"And": {"Prefix": "y/", "Tags": [{"Key": "k", "Value": "v"}]}}),
    ]
    put_rules(*rules)
    assert stored() == rules, stored()
    put_rules({**rule(), "ID": ""})
    assert stored()[0]["ID"], stored()
    s3.delete_bucket_lifecycle(Bucket=BUCKET)
    with raises("NoSuchLifecycleConfiguration", 404):
        stored()


def check_invalid_lifecycle_rules_are_refused():
    transition = [{"Days": 1, "StorageClass": "GLACIER"}]
    with raises("InvalidArgument", 400):
        put_rules(rule("a"), rule("a", "other"))
    with raises("InvalidArgument", 400):
        put_rules(rule("a" * 256))
    with raises("InvalidArgument", 400):
        put_rules(rule(days=0))
    with raises("MalformedXML", 400):
        put_rules(rule(Status="enabled"))
    with raises("MalformedXML", 400):
        put_rules(rule(Expiration={"Days": 1, "Date": MIDNIGHT}))
    with raises("InvalidArgument", 400):
        put_rules(rule(Expiration={"Date": MIDNIGHT + timedelta(hours=1)}))
    with raises("InvalidRequest", 400):
        put_rules(*(rule(str(number)) for number in range(1001)))
    with raises("MalformedXML", 400):
        put_rules(rule(Filter={"Prefix": "a", "Tag": {"Key": "k", "Value": "v"}}))
    with raises("NotImplemented", 501):
        put_rules(rule(Transitions=transition))
    with raises("InvalidArgument", 400):
        put_rules(rule(NoncurrentVersionExpiration={"NoncurrentDays": 0}))
    with raises("NoSuchBucket", 404):
        put_rules(rule(), bucket="absent-bucket")


def check_objects_expire():
    """The server of the test checks often; a date in the past expires all objects."""
    put_rules(rule("in days", "expiring/", 3))
    # The end of the third day, rounded up to midnight.
    now = datetime.now(timezone.utc)
    midnight = (now + timedelta(days=4)).replace(hour=0, minute=0, second=0, microsecond=0)
    date = midnight.strftime("%a, %d %b %Y %H:%M:%S GMT")
    expected = f'expiry-date="{date}", rule-id="in+days"'
    assert put("expiring/a")["Expiration"] == expected, expected
    assert head("expiring/a")["Expiration"] == expected
    assert get("expiring/a")["Expiration"] == expected
    assert "Expiration" not in put("staying")
    put("by-tags/a", Tagging="class=temp")
    put("by-tags/b", Tagging="class=kept")
    tagged = {"Prefix": "by-tags/", "Tags": [{"Key": "class", "Value": "temp"}]}
    past = {"Date": MIDNIGHT}
    put_rules(
        rule("tags", Filter={"And": tagged}, Expiration=past),
        rule("date", "expiring/", Expiration=past),
    )
    assert get("by-tags/b").get("Expiration") is None
    deadline = time.monotonic() + 60
    while "Contents" in s3.list_objects_v2(Bucket=BUCKET, Prefix="expiring/"):
        assert time.monotonic() < deadline, "the object did not expire"
        time.sleep(0.1)
    for key in ["expiring/a", "by-tags/a"]:
        with raises("NoSuchKey", 404):
            get(key)
    head("staying")
    head("by-tags/b")
    s3.delete_bucket_lifecycle(Bucket=BUCKET)


def main():
    s3.create_bucket(Bucket=BUCKET)
    checks = {name: f for name, f in globals().items() if name.startswith("check_")}
    for name, check in checks.items():
        print(name.replace("_", " "), flush=True)
        check()
    empty_bucket()
    s3.delete_bucket(Bucket=BUCKET)
    print(f"{len(checks)} checks passed")


main()
