"""A round trip of DuckDB with httpfs: duckdb_httpfs.py URL ACCESS_KEY SECRET_KEY FILE TREE.

DuckDB downloads its extension httpfs, or loads the one of the package duckdb-ext-httpfs.
"""

import glob
import os
import sys

import boto3
import duckdb

URL, ACCESS, SECRET, _, _ = sys.argv[1:]
scheme, host = URL.split("://")
s3 = boto3.client("s3", endpoint_url=URL, aws_access_key_id=ACCESS, aws_secret_access_key=SECRET)
s3.create_bucket(Bucket="duckdb")
db = duckdb.connect()
installed = f"../duckdb_ext/extensions/v{duckdb.__version__}/*/httpfs.duckdb_extension"
installed = glob.glob(os.path.join(os.path.dirname(duckdb.__file__), installed))
db.execute(f"LOAD '{installed[0]}'" if installed else "INSTALL httpfs; LOAD httpfs")
db.execute(
    f"CREATE SECRET (TYPE s3, KEY_ID '{ACCESS}', SECRET '{SECRET}', ENDPOINT '{host}', "
    f"USE_SSL {scheme == 'https'}, URL_STYLE 'path')"
)
rows = "SELECT i, i % 4 AS part, hash(i) AS h FROM range(20000000) t(i)"
db.execute(f"COPY ({rows}) TO 's3://duckdb/one.parquet'")
db.execute(f"COPY ({rows}) TO 's3://duckdb/parts' (FORMAT parquet, PARTITION_BY part)")
for source in "one.parquet", "parts/*/*.parquet":
    query = f"SELECT count(*), sum(i) FROM 's3://duckdb/{source}' WHERE part = 3"
    assert db.execute(query).fetchone() == (5_000_000, 50_000_005_000_000), source
objects = s3.list_objects_v2(Bucket="duckdb")["Contents"]
assert len(objects) > 4
assert {entry["Key"]: entry["Size"] for entry in objects}["one.parquet"] > 100_000_000
for entry in objects:
    s3.delete_object(Bucket="duckdb", Key=entry["Key"])
s3.delete_bucket(Bucket="duckdb")
print("duckdb", duckdb.__version__)
