//! Mutated requests: none makes the server fail. `HAUL_DEPTH` multiplies their number.

use std::io::Write;

use haul_disk_sim::MemoryDisk;
use haul_s3_server::{Credentials, Limits};
use haul_testing::{PATIENCE, Random, replay_command};

use crate::client::{Client, Reply, Running};
use crate::signing::{Signer, hash};

/// The number of mutated requests to each of the two servers.
const MUTATIONS: u64 = 5000;

/// The state on which the requests work is made again after this many requests.
const REQUESTS_OF_A_STATE: u64 = 50;

/// Pieces that mutations insert: names, separators and values that parsers interpret.
const PIECES: &[&str] = &[
    "\r\n",
    "\r\n\r\n",
    " ",
    "/",
    "//",
    "?",
    "&",
    "=",
    "%",
    "%00",
    "%2F",
    "%FF",
    "..",
    "\0",
    "\u{e9}",
    "-1",
    "0",
    "18446744073709551616",
    "9223372036854775807",
    "NaN",
    "*",
    "\"",
    ",",
    ";",
    ":",
    "<",
    ">",
    "</",
    "]]>",
    "&amp;",
    "&x;",
    "<Key>",
    "</Key>",
    "<!DOCTYPE a>",
    "<?xml?>",
    "?acl",
    "?uploads",
    "?uploadId=1",
    "?partNumber=1",
    "?versionId=null",
    "?delete",
    "?tagging",
    "?lifecycle",
    "?attributes",
    "?list-type=2",
    "?versioning",
    "?policy",
    "?max-keys=-1",
    "transfer-encoding: chunked\r\n",
    "content-length: 0\r\n",
    "content-length: 9\r\n",
    "expect: 100-continue\r\n",
    "host: a\r\n",
    "content-encoding: aws-chunked\r\n",
    "content-md5: AAAA\r\n",
    "content-type: multipart/form-data; boundary=a\r\n",
    "x-amz-decoded-content-length: 5\r\n",
    "x-amz-trailer: x-amz-checksum-crc32\r\n",
    "x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER\r\n",
    "x-amz-content-sha256: UNSIGNED-PAYLOAD\r\n",
    "x-amz-copy-source: /bucket/key\r\n",
    "x-amz-copy-source-range: bytes=0-1\r\n",
    "x-amz-checksum-algorithm: CRC32\r\n",
    "x-amz-checksum-type: COMPOSITE\r\n",
    "x-amz-checksum-crc32: AAAAAA==\r\n",
    "x-amz-checksum-mode: ENABLED\r\n",
    "x-amz-meta-a: =?UTF-8?B?w6k=?=\r\n",
    "x-amz-meta-: a\r\n",
    "x-amz-tagging: a=b\r\n",
    "x-amz-object-attributes: ObjectParts\r\n",
    "x-amz-max-parts: 1\r\n",
    "x-amz-if-match-size: 5\r\n",
    "x-amz-metadata-directive: REPLACE\r\n",
    "x-amz-mp-object-size: 5\r\n",
    "range: bytes=0-\r\n",
    "range: bytes=-0\r\n",
    "if-match: *\r\n",
    "if-none-match: *\r\n",
    "if-modified-since: Wed, 21 Oct 2015 07:28:00 GMT\r\n",
    "x-amz-expected-bucket-owner: a\r\n",
    "x-amz-date: 20150830T123600Z\r\n",
];

/// A request before it is mutated.
#[derive(Clone)]
struct Template {
    method: &'static str,
    target: String,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

fn template(method: &'static str, target: &str) -> Template {
    Template { method, target: target.to_owned(), headers: Vec::new(), body: Vec::new() }
}

impl Template {
    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    fn body(mut self, body: &str) -> Self {
        self.body = body.into();
        self
    }

    fn headers(&self) -> Vec<(&str, &str)> {
        self.headers.iter().map(|(name, value)| (*name, value.as_str())).collect()
    }
}

/// The ETag of `hello`.
const ETAG: &str = "\"5d41402abc4b2a76b9719d911017c592\"";

/// Returns valid requests of all kinds, for an upload with this ID.
fn templates(upload: &str) -> Vec<Template> {
    let mut all = bucket_templates();
    all.extend(object_templates());
    all.extend(upload_templates(upload));
    all
}

fn bucket_templates() -> Vec<Template> {
    let rules = "<LifecycleConfiguration><Rule><ID>a</ID><Filter><And><Prefix>logs/</Prefix>\
                 <ObjectSizeLessThan>9</ObjectSizeLessThan></And></Filter><Status>Enabled</Status>\
                 <Expiration><Days>3650</Days></Expiration></Rule></LifecycleConfiguration>";
    vec![
        template("GET", "/"),
        template("PUT", "/bucket-2"),
        template("PUT", "/bucket-3").body(
            "<CreateBucketConfiguration><LocationConstraint>us-east-1</LocationConstraint>\
             </CreateBucketConfiguration>",
        ),
        template("HEAD", "/bucket"),
        template("DELETE", "/bucket-2"),
        template("GET", "/bucket?location"),
        template("GET", "/bucket?versioning"),
        template("GET", "/bucket?acl"),
        template("GET", "/bucket?prefix=k&delimiter=%2F&marker=a&max-keys=2&encoding-type=url"),
        template("GET", "/bucket?list-type=2&prefix=k&start-after=a&max-keys=1&fetch-owner=true"),
        template("GET", "/bucket?versions&key-marker=a&max-keys=1"),
        template("GET", "/bucket?uploads&prefix=p&max-uploads=1"),
        template("PUT", "/bucket?lifecycle").body(rules),
        template("GET", "/bucket?lifecycle"),
        template("DELETE", "/bucket?lifecycle"),
        template("POST", "/bucket")
            .with("content-type", "multipart/form-data; boundary=a")
            .body("--a\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nk\r\n--a--\r\n"),
        template("OPTIONS", "/bucket/key").with("access-control-request-method", "GET"),
    ]
}

fn object_templates() -> Vec<Template> {
    const TAGS: &str =
        "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
    const CHUNKS: &str = "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n";
    let delete = format!(
        "<Delete><Quiet>false</Quiet><Object><Key>a</Key><VersionId>null</VersionId></Object>\
         <Object><Key>key</Key><ETag>{ETAG}</ETag><Size>5</Size></Object></Delete>"
    );
    vec![
        template("PUT", "/bucket/key").body("hello"),
        template("PUT", "/bucket/a%20b")
            .with("content-type", "text/plain")
            .with("x-amz-meta-color", "blue")
            .with("x-amz-tagging", "a=b&c=d")
            .with("x-amz-checksum-crc32", "NhCmhg==")
            .with("content-md5", "XUFAKrxLKna5cZ2REBfFkg==")
            .with("expires", "Wed, 21 Oct 2065 07:28:00 GMT")
            .body("hello"),
        template("PUT", "/bucket/new").with("if-none-match", "*").body("hello"),
        template("PUT", "/bucket/key").with("if-match", ETAG).body("hello"),
        template("PUT", "/bucket/chunks")
            .with("content-encoding", "aws-chunked")
            .with("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER")
            .with("x-amz-decoded-content-length", "5")
            .with("x-amz-trailer", "x-amz-checksum-crc32")
            .body(CHUNKS),
        template("GET", "/bucket/key"),
        template("GET", "/bucket/key").with("range", "bytes=1-2").with("if-range", ETAG),
        template("GET", "/bucket/key?partNumber=1&response-content-type=a%2Fb"),
        template("HEAD", "/bucket/key").with("x-amz-checksum-mode", "ENABLED"),
        template("HEAD", "/bucket/key").with("if-none-match", ETAG),
        template("GET", "/bucket/key?attributes")
            .with("x-amz-object-attributes", "ETag,Checksum,ObjectParts,ObjectSize")
            .with("x-amz-max-parts", "1"),
        template("PUT", "/bucket/copy")
            .with("x-amz-copy-source", "/bucket/key")
            .with("x-amz-metadata-directive", "REPLACE")
            .with("x-amz-copy-source-if-match", ETAG),
        template("DELETE", "/bucket/key").with("if-match", ETAG).with("x-amz-if-match-size", "5"),
        template("POST", "/bucket?delete").body(&delete),
        template("PUT", "/bucket/key?tagging").body(TAGS),
        template("GET", "/bucket/key?tagging"),
        template("DELETE", "/bucket/key?tagging"),
    ]
}

fn upload_templates(upload: &str) -> Vec<Template> {
    let part = format!("/bucket/parts?partNumber=1&uploadId={upload}");
    let upload_target = format!("/bucket/parts?uploadId={upload}");
    let complete = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{ETAG}</ETag>\
         <ChecksumCRC32>NhCmhg==</ChecksumCRC32></Part></CompleteMultipartUpload>"
    );
    vec![
        template("POST", "/bucket/new-parts?uploads")
            .with("x-amz-checksum-algorithm", "CRC32")
            .with("x-amz-checksum-type", "FULL_OBJECT"),
        template("PUT", &part).with("x-amz-checksum-crc32", "NhCmhg==").body("hello"),
        template("PUT", &part)
            .with("x-amz-copy-source", "/bucket/key")
            .with("x-amz-copy-source-range", "bytes=0-4"),
        template("GET", &format!("{upload_target}&max-parts=1&part-number-marker=0")),
        template("POST", &upload_target).with("x-amz-mp-object-size", "5").body(&complete),
        template("DELETE", &upload_target),
    ]
}

/// Changes a request in up to four places. `other` is another request.
fn mutate(random: &mut Random, mut bytes: Vec<u8>, other: &[u8]) -> Vec<u8> {
    if bytes.is_empty() {
        bytes.push(b'a');
    }
    for _ in 0..=random.below(4) {
        let at = random.index(bytes.len().max(1));
        let end = (at + 1 + random.index(16)).min(bytes.len());
        match random.below(8) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = *random.pick(b"\0\r\n \t\"%&/<>?=:-0A~\x7f\x80\xff"),
            2 => drop(bytes.drain(at..end)),
            3 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
            4 | 5 => drop(bytes.splice(at..at, random.pick(PIECES).bytes())),
            // A field, between two others.
            6 => {
                let ends: Vec<_> =
                    (2..bytes.len()).filter(|&at| bytes[at - 2..at] == *b"\r\n").collect();
                let at = if ends.is_empty() { 0 } else { *random.pick(&ends) };
                drop(bytes.splice(at..at, random.pick(PIECES).bytes()));
            }
            _ => {
                let from = random.index(other.len());
                let to = (from + random.index(40)).min(other.len());
                drop(bytes.splice(at..end, other[from..to].iter().copied()));
            }
        }
        if bytes.is_empty() {
            return b"\r\n".to_vec();
        }
    }
    bytes
}

/// Changes a part of a request before it is framed, and signed if the server has keys.
fn mutate_part(random: &mut Random, template: &Template, other: &Template) -> Template {
    let text = |random: &mut Random, text: &str, other: &str| {
        let mutated = mutate(random, text.into(), &[other.as_bytes(), b"a"].concat());
        // The head of a request is text without line breaks.
        String::from_utf8_lossy(&mutated).replace(['\r', '\n', ' ', '\0'], "+")
    };
    let Template { method, mut target, mut headers, mut body } = template.clone();
    match random.below(4) {
        0 => target = format!("/{}", text(random, &target[1..], &other.target)),
        1 if !headers.is_empty() => {
            let index = random.index(headers.len());
            headers[index].1 = text(random, &headers[index].1, &other.target);
        }
        2 if !body.is_empty() => body = mutate(random, body, &[&other.body[..], b"a"].concat()),
        _ => headers.extend(other.headers.iter().cloned()),
    }
    Template { method, target, headers, body }
}

/// Sends bytes and the end of the stream, and reads the first response.
fn exchange(client: &Client, bytes: &[u8]) -> Reply {
    let mut stream = client.connect();
    stream.tcp().set_read_timeout(Some(PATIENCE)).unwrap();
    drop(stream.write_all(bytes));
    drop(stream.shutdown_write());
    Reply::read(&mut stream)
}

/// Returns `true` for a response that reports a failure of the server: one of the class 5xx, except
/// for a feature that does not exist, and a version of HTTP that is not supported.
fn is_failure(reply: &Reply) -> bool {
    reply.status >= 500 && !matches!(reply.status, 501 | 505)
}

/// Sends mutated requests, each made by `request` from a template. `reset` makes the state on which
/// they work, and returns the ID of an upload.
fn run(server: &Running, reset: impl Fn() -> String, request: impl Fn(&Template) -> Vec<u8>) {
    let seed = haul_testing::seed();
    let mut random = Random(seed);
    let mut all = Vec::new();
    let (mut failures, mut statuses) = (Vec::new(), std::collections::BTreeMap::new());
    for number in 0..MUTATIONS * haul_testing::depth() {
        if number % REQUESTS_OF_A_STATE == 0 {
            all = templates(&reset());
        }
        let (one, other) = (random.pick(&all), random.pick(&all));
        let mutated = match random.below(2) {
            0 => mutate(&mut random, request(one), &request(other)),
            _ => request(&mutate_part(&mut random, one, other)),
        };
        let reply = exchange(&server.s3, &mutated);
        *statuses.entry(reply.status).or_insert(0) += 1;
        if is_failure(&reply) {
            let request = String::from_utf8_lossy(&mutated).into_owned();
            failures.push(format!("{request}\n-> {}: {}\n", reply.status, reply.text()));
        }
    }
    println!("responses by status: {statuses:?}");
    assert!(failures.is_empty(), "{}\n{}", failures.join("\n"), replay_command(seed));
}

#[test]
fn mutated_requests_without_keys_never_fail_the_server() {
    let disk = MemoryDisk::default();
    let server = Running::in_memory(&disk);
    let reset = || {
        server.s3.put("/bucket", b"");
        server.s3.put("/bucket/key", b"hello");
        let started = server.s3.post("/bucket/parts?uploads", "");
        let upload = started.xml("UploadId").unwrap();
        server.s3.put(&format!("/bucket/parts?partNumber=1&uploadId={upload}"), b"hello");
        upload
    };
    let request = |template: &Template| {
        server.s3.request(template.method, &template.target, &template.headers(), &template.body)
    };
    run(&server, reset, request);
}

#[test]
fn mutated_requests_with_keys_never_fail_the_server() {
    let credentials =
        Credentials { access_key: "access".into(), secret_key: "secret0123456789".into() };
    let server = Running::with(Some(credentials), Limits::default());
    let signer = Signer { client: server.s3, access_key: "access", secret_key: "secret0123456789" };
    let send =
        |method: &str, target: &str, body: &[u8]| signer.send(method, target, &hash(body), body);
    let reset = || {
        send("PUT", "/bucket", b"");
        send("PUT", "/bucket/key", b"hello");
        let started = send("POST", "/bucket/parts?uploads=", b"");
        let upload = started.xml("UploadId").unwrap();
        let part = format!("/bucket/parts?partNumber=1&uploadId={upload}");
        send("PUT", &part, b"hello");
        upload
    };
    let request = |template: &Template| {
        let streaming = template.headers.iter().find(|(name, _)| *name == "x-amz-content-sha256");
        let hash = streaming.map_or_else(|| hash(&template.body), |(_, value)| value.clone());
        let mut headers = template.headers();
        headers.retain(|(name, _)| *name != "x-amz-content-sha256");
        let body = |_: &_| template.body.clone();
        signer.request(template.method, &template.target, &hash, &headers, body)
    };
    run(&server, reset, request);
}
