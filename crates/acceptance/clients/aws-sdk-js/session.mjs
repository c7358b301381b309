// A round trip of the AWS SDK for JavaScript v3 against a server:
//
//     node session.mjs URL ACCESS_KEY SECRET_KEY FILE TREE

import assert from "node:assert/strict";
import { createReadStream, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

import { S3 } from "@aws-sdk/client-s3";
import { GetObjectCommand, PutObjectCommand, paginateListObjectsV2 } from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";

const [endpoint, accessKeyId, secretAccessKey, file, tree] = process.argv.slice(2);
const credentials = { accessKeyId, secretAccessKey };
const s3 = new S3({ endpoint, region: "us-east-1", credentials, forcePathStyle: true });
const Bucket = "aws-sdk-js";

async function get(Key, options = {}) {
  const { Body } = await s3.getObject({ Bucket, Key, ...options });
  return Buffer.from(await Body.transformToByteArray());
}

async function parts() {
  const content = readFileSync(file);
  const params = { Bucket, Key: "big", Body: createReadStream(file) };
  await new Upload({ client: s3, params }).done();
  assert((await get("big")).equals(content));
  assert((await get("big", { Range: "bytes=1000-1999" })).equals(content.subarray(1000, 2000)));
  await s3.copyObject({ Bucket, Key: "copy", CopySource: `${Bucket}/big` });
  assert((await get("copy")).equals(content));
  // A stream in one request, with a checksum in its trailer.
  const options = { ContentLength: content.length, ChecksumAlgorithm: "SHA256" };
  await s3.putObject({ Bucket, Key: "stream", Body: createReadStream(file), ...options });
  assert((await get("stream", { ChecksumMode: "ENABLED" })).equals(content));
}

async function many() {
  const names = readdirSync(tree, { recursive: true }).filter((name) => name.endsWith(".bin"));
  for (const name of names) {
    await s3.putObject({ Bucket, Key: `tree/${name}`, Body: readFileSync(join(tree, name)) });
  }
  const listed = [];
  const options = { client: s3, pageSize: 300 };
  for await (const page of paginateListObjectsV2(options, { Bucket, Prefix: "tree/" })) {
    listed.push(...page.Contents.map(({ Key }) => Key));
  }
  assert.deepEqual(new Set(listed), new Set(names.map((name) => `tree/${name}`)));
  for (const name of names) {
    assert((await get(`tree/${name}`)).equals(readFileSync(join(tree, name))), name);
  }
  const folders = await s3.listObjectsV2({ Bucket, Prefix: "tree/", Delimiter: "/" });
  assert.equal(folders.CommonPrefixes.length, 20);
  const Objects = listed.map((Key) => ({ Key }));
  const { Deleted } = await s3.deleteObjects({ Bucket, Delete: { Objects } });
  assert.equal(Deleted.length, 1000);
}

async function presigned() {
  const at = { Bucket, Key: "presigned ä+&" };
  const put = await getSignedUrl(s3, new PutObjectCommand(at));
  assert.equal((await fetch(put, { method: "PUT", body: "by URL" })).status, 200);
  const response = await fetch(await getSignedUrl(s3, new GetObjectCommand(at)));
  assert.equal(await response.text(), "by URL");
}

async function versions() {
  const VersioningConfiguration = { Status: "Enabled" };
  await s3.putBucketVersioning({ Bucket, VersioningConfiguration });
  for (const Body of ["first", "second"]) {
    const { VersionId } = await s3.putObject({ Bucket, Key: "versions", Body });
    assert.equal((await get("versions", { VersionId })).toString(), Body);
  }
  await assert.rejects(
    s3.putObject({ Bucket, Key: "versions", Body: "never stored", IfNoneMatch: "*" }),
    { name: "PreconditionFailed" },
  );
}

async function removeAll() {
  const { Versions } = await s3.listObjectVersions({ Bucket });
  const Objects = Versions.map(({ Key, VersionId }) => ({ Key, VersionId }));
  await s3.deleteObjects({ Bucket, Delete: { Objects } });
  await s3.deleteBucket({ Bucket });
}

await s3.createBucket({ Bucket });
for (const step of [parts, many, presigned, versions, removeAll]) {
  await step();
}
const { version } = createRequire(import.meta.url)("@aws-sdk/client-s3/package.json");
console.log("@aws-sdk/client-s3", version);
