"""Users of different rights against a running server, with boto3 and `haul keys`.

usage: users_session.py HAUL KEY_FILE SEALING_KEY URL ACCESS_KEY SECRET_KEY

The last two are the key pair of the administrator. Each function named check_... runs in order.
"""

import json
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import boto3
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError

HAUL, KEY_FILE, SEALING_KEY, URL = sys.argv[1:5]
ADMINISTRATOR = tuple(sys.argv[5:7])

# The longest time that a test waits for a change; the server promises one second.
PATIENCE_S = 30


def haul(*arguments):
    files = ["--keys", KEY_FILE, "--sealing-key", SEALING_KEY]
    command = [HAUL, "keys", *arguments, "--json", *files]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output)


def client(keys, service="s3", **config):
    """Returns a client with the default signatures of boto3; without keys, one without any.

    Temporary keys have a token in addition to the access key and the secret key.
    """
    access, secret, token = (*(keys or (None, None)), None)[:3]
    if not keys:
        config["signature_version"] = UNSIGNED
    config = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, **config)
    return boto3.client(
        service,
        endpoint_url=URL,
        region_name="us-east-1",
        aws_access_key_id=access,
        aws_secret_access_key=secret,
        aws_session_token=token,
        config=config,
    )


def create(user, *allow):
    options = [option for right in allow for option in ("--allow", right)]
    key = haul("create", user, *options)
    pair = key["access_key"], key["secret_key"]
    # ListBuckets needs a key, and no right.
    eventually("the key is accepted", lambda: outcome(client(pair).list_buckets) == "ok")
    return key["access_key"], client(pair)


def outcome(call, **parameters):
    """Returns `ok`, or the error code. The response to HEAD has no code, but the status."""
    try:
        call(**parameters)
        return "ok"
    except ClientError as error:
        return error.response["Error"]["Code"]


def eventually(what, holds):
    started = time.monotonic()
    while not holds():
        assert time.monotonic() - started < PATIENCE_S, what
    print(f"{what}: {time.monotonic() - started:.2f} s")


def fetch(url, method="GET", body=None):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, method=method)) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


root = client(ADMINISTRATOR)
nameless = client(None)


def check_two_users():
    _, alice = create("alice", "create-buckets")
    _, bob = create("bob", "read,list=alices/shared/")
    alice.create_bucket(Bucket="alices")
    alice.put_object(Bucket="alices", Key="private", Body=b"1")
    alice.put_object(Bucket="alices", Key="shared/a", Body=b"2")
    assert bob.get_object(Bucket="alices", Key="shared/a")["Body"].read() == b"2"
    assert outcome(bob.get_object, Bucket="alices", Key="private") == "AccessDenied"
    assert outcome(bob.head_object, Bucket="alices", Key="private") == "403"
    assert outcome(bob.put_object, Bucket="alices", Key="shared/a", Body=b"3") == "AccessDenied"
    assert outcome(bob.delete_object, Bucket="alices", Key="shared/a") == "AccessDenied"
    assert outcome(bob.list_objects_v2, Bucket="alices") == "AccessDenied"
    listed = bob.list_objects_v2(Bucket="alices", Prefix="shared/")
    assert [found["Key"] for found in listed["Contents"]] == ["shared/a"]
    assert outcome(bob.create_bucket, Bucket="bobs") == "AccessDenied"
    assert [found["Name"] for found in bob.list_buckets()["Buckets"]] == ["alices"]
    assert alice.get_bucket_acl(Bucket="alices")["Owner"]["ID"] == "alice"
    body = {"Objects": [{"Key": "private"}, {"Key": "shared/a"}]}
    refused = bob.delete_objects(Bucket="alices", Delete=body)
    assert [error["Code"] for error in refused["Errors"]] == ["AccessDenied"] * 2, refused
    assert outcome(nameless.get_object, Bucket="alices", Key="shared/a") == "AccessDenied"


def check_presigned_urls():
    """boto3 signs URLs with version 2 by default."""
    _, writer = create("writer", "read,write=alices/in/")
    place = {"Bucket": "alices", "Key": "in/a b+ä"}
    put = writer.generate_presigned_url("put_object", {**place, "Metadata": {"a": "b"}})
    get = writer.generate_presigned_url("get_object", {**place, "ResponseContentType": "a/b"})
    assert "AWSAccessKeyId=" in put and "AWSAccessKeyId=" in get, "version 2"
    assert fetch(put, "PUT", b"body")[0] == 403, "urllib adds a type to a body, which is signed"
    typed = {**place, "ContentType": "application/x-www-form-urlencoded", "Metadata": {"a": "b"}}
    put = writer.generate_presigned_url("put_object", typed)
    put = put.replace("content-type=application%2Fx-www-form-urlencoded&", "")
    assert fetch(put, "PUT", b"body") == (200, b"")
    assert writer.head_object(**place)["Metadata"] == {"a": "b"}
    assert fetch(get) == (200, b"body")
    status, body = fetch(get.replace("in/", "out/"))
    assert status == 403 and b"SignatureDoesNotMatch" in body, body
    status, body = fetch(get, "DELETE")
    assert status == 403 and b"SignatureDoesNotMatch" in body, body
    other = writer.generate_presigned_url("get_object", {**place, "Key": "private"})
    status, body = fetch(other)
    assert status == 403 and b"AccessDenied" in body, body
    version_4 = client(ADMINISTRATOR, signature_version="s3v4")
    assert fetch(version_4.generate_presigned_url("get_object", place)) == (200, b"body")


def check_revocation():
    access, reader = create("reader", "read=alices")
    get = {"Bucket": "alices", "Key": "shared/a"}
    url = reader.generate_presigned_url("get_object", get)
    assert outcome(reader.get_object, **get) == "ok" and fetch(url)[0] == 200
    haul("forbid", access, "read", "alices")
    eventually("a right is removed", lambda: outcome(reader.get_object, **get) == "AccessDenied")
    haul("allow", access, "read", "alices/shared/")
    eventually("a right is added", lambda: outcome(reader.get_object, **get) == "ok")
    haul("disable", access)
    unknown = "InvalidAccessKeyId"
    eventually("a key is disabled", lambda: outcome(reader.get_object, **get) == unknown)
    haul("enable", access)
    eventually("a key is enabled", lambda: outcome(reader.get_object, **get) == "ok")
    haul("remove", access)
    eventually("a key is removed", lambda: outcome(reader.get_object, **get) == unknown)
    status, body = fetch(url)
    assert status == 403 and unknown.encode() in body, body


def check_rotation():
    access, reader = create("rotated", "read=alices")
    get = {"Bucket": "alices", "Key": "shared/a"}
    new = haul("rotate", access, "--overlap", "1h")
    renewed = client((new["access_key"], new["secret_key"]))
    eventually("the new key is accepted", lambda: outcome(renewed.get_object, **get) == "ok")
    assert outcome(reader.get_object, **get) == "ok"
    haul("rotate", access, "--overlap", "0s")
    unknown = "InvalidAccessKeyId"
    eventually("the old key is refused", lambda: outcome(reader.get_object, **get) == unknown)


def check_policies():
    _, carol = create("carol")
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::alices/shared/*"}
    put_policy("read-shared", statement)
    haul("group", "add", "readers", "carol")
    haul("policy", "attach", "read-shared", "--group", "readers")
    get = {"Bucket": "alices", "Key": "shared/a"}
    eventually("a policy is attached", lambda: outcome(carol.get_object, **get) == "ok")
    assert outcome(carol.get_object, Bucket="alices", Key="private") == "AccessDenied"
    put_policy("read-shared", {**statement, "Effect": "Deny"})
    refused = "AccessDenied"
    eventually("a policy is replaced", lambda: outcome(carol.get_object, **get) == refused)


def put_policy(name, statement):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"Version": "2012-10-17", "Statement": [statement]}, file)
        file.flush()
        haul("policy", "put", name, file.name)


def temporary(response):
    keys = response["Credentials"]
    assert keys["Expiration"].timestamp() > time.time() + 800
    return keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"]


def check_temporary_keys():
    access, _ = create("dave", "read=alices")
    secret = haul("rotate", access, "--overlap", "0s")
    pair = secret["access_key"], secret["secret_key"]
    sts = client(pair, service="sts")
    eventually("the key may use STS", lambda: outcome(sts.get_session_token) == "ok")
    keys = temporary(sts.get_session_token(DurationSeconds=900))
    session = client(keys)
    assert session.get_object(Bucket="alices", Key="private")["Body"].read() == b"1"
    assert outcome(session.put_object, Bucket="alices", Key="private", Body=b"2") == "AccessDenied"
    role = {"RoleArn": "arn:aws:iam::000000000000:role/any", "RoleSessionName": "test"}
    allow = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::alices/shared/*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
    keys = temporary(sts.assume_role(**role, Policy=policy))
    limited = client(keys)
    get = {"Bucket": "alices", "Key": "shared/a"}
    assert limited.get_object(**get)["Body"].read() == b"2"
    assert outcome(limited.get_object, Bucket="alices", Key="private") == "AccessDenied"
    version_4 = client(keys, signature_version="s3v4")
    url = version_4.generate_presigned_url("get_object", get)
    assert fetch(url) == (200, b"2")
    assert fetch(version_4.generate_presigned_url("get_object", {**get, "Key": "private"}))[0] == 403
    assert fetch(limited.generate_presigned_url("get_object", get))[0] == 400, "version 2"
    nested = client(keys, service="sts")
    assert outcome(nested.get_session_token) == "AccessDenied"
    assert outcome(nested.assume_role, **role) == "AccessDenied"
    assert outcome(sts.assume_role, **role, DurationSeconds=43201) == "ValidationError"
    root_sts = client(ADMINISTRATOR, service="sts")
    restricted = client(temporary(root_sts.assume_role(**role, Policy=policy)))
    assert outcome(restricted.get_object, **get) == "ok"
    assert outcome(restricted.list_buckets) == "AccessDenied"
    haul("remove", pair[0])
    unknown = "InvalidAccessKeyId"
    eventually("a session ends", lambda: outcome(session.get_object, **get) == unknown)
    assert fetch(url)[0] == 403


def check_anonymous_reads():
    get = {"Bucket": "alices", "Key": "shared/a"}
    haul("allow", "anonymous", "read", "alices/shared/")
    eventually("anonymous reads", lambda: outcome(nameless.get_object, **get) == "ok")
    assert outcome(nameless.get_object, Bucket="alices", Key="private") == "AccessDenied"
    assert outcome(nameless.list_objects_v2, Bucket="alices") == "AccessDenied"
    assert outcome(nameless.put_object, **get, Body=b"x") == "AccessDenied"
    haul("forbid", "anonymous", "read", "*")
    eventually("no anonymous reads", lambda: outcome(nameless.get_object, **get) == "AccessDenied")


def check_administrator():
    assert [found["Name"] for found in root.list_buckets()["Buckets"]] == ["alices"]
    assert outcome(root.create_bucket, Bucket="alices") == "BucketAlreadyExists"
    assert root.get_object(Bucket="alices", Key="private")["Body"].read() == b"1"


for name, check in list(globals().items()):
    if name.startswith("check_"):
        print(name)
        check()
