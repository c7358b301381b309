//! The answer to a request does not depend on how it is signed or framed.

use haul_s3_server::{Credentials, Limits};

use crate::client::{Header, Reply, Running, noise};
use crate::signing::{Signer, hash};

const ACCESS: &str = "haul-test-key";
const SECRET: &str = "haul-test-secret";

/// A way to send a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Without a signature, to a server without keys.
    Open,
    /// A signature of version 4 in a header, with the hash of the body.
    Hash,
    /// The same, without a hash.
    UnsignedBody,
    /// The same, with signed chunks if the body is an object.
    SignedChunks,
    SignedTrailer,
    UnsignedTrailer,
    /// A presigned URL of version 4, with all headers of AWS in its query.
    UrlV4,
    UrlV2,
}

const WAYS: [Way; 8] = [
    Way::Open,
    Way::Hash,
    Way::UnsignedBody,
    Way::SignedChunks,
    Way::SignedTrailer,
    Way::UnsignedTrailer,
    Way::UrlV4,
    Way::UrlV2,
];

/// A request: method, target, headers, and body.
type Row = (&'static str, &'static str, &'static [Header<'static>], &'static [u8]);

const TAGS: &[u8] = b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
const RULES: &[u8] =
    b"<LifecycleConfiguration><Rule><ID>old one</ID><Status>Enabled</Status><Filter>\
      <Prefix>expiring</Prefix></Filter><Expiration><Days>3</Days></Expiration></Rule>\
      </LifecycleConfiguration>";
const DELETE: &[u8] = b"<Delete><Object><Key>x<![CDATA[A]]>y</Key></Object>\
                        <Object><Key>absent</Key></Object></Delete>";
const CORS: &[u8] = b"<CORSConfiguration><CORSRule><AllowedMethod>GET</AllowedMethod>\
                      <AllowedOrigin>http://a</AllowedOrigin></CORSRule></CORSConfiguration>";
const POLICY: &[u8] = br#"{"Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:GetObject",
                          "Resource":"arn:aws:s3:::bucket/public/*"}]}"#;
const VERSIONING: &[u8] =
    b"<VersioningConfiguration><Status>\n Enabled \n</Status></VersioningConfiguration>";
const OWNERSHIP: &[u8] = b"<OwnershipControls><Rule><ObjectOwnership>BucketOwnerEnforced\
                           </ObjectOwnership></Rule></OwnershipControls>";
const WEBSITE: &[u8] = b"<WebsiteConfiguration><IndexDocument><Suffix>index.html</Suffix>\
    </IndexDocument></WebsiteConfiguration>";
const QUOTA: &[u8] = b"<QuotaConfiguration><Bytes>1000000000</Bytes></QuotaConfiguration>";
const BLOCK: &[u8] = b"<PublicAccessBlockConfiguration><BlockPublicAcls>true</BlockPublicAcls>\
                       </PublicAccessBlockConfiguration>";
const LOGGED: &[u8] = b"<BucketLoggingStatus/>";
const ENCRYPTED: &[u8] = b"<ServerSideEncryptionConfiguration><Rule>\
    <ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm>\
    </ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>";
const LOCKS: &[u8] =
    b"<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule>\
    <DefaultRetention><Mode>GOVERNANCE</Mode><Days>1</Days></DefaultRetention></Rule>\
    </ObjectLockConfiguration>";
const RETENTION: &[u8] =
    b"<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>2099-01-01T00:00:00Z</RetainUntilDate>\
    </Retention>";
const HOLD: &[u8] = b"<LegalHold><Status> ON </Status></LegalHold>";
const CANNED: &[Header] = &[("x-amz-acl", "private")];
const WITH_LOCKS: &[Header] = &[("x-amz-bucket-object-lock-enabled", "true")];
const COPIED: &[Header] = &[("x-amz-copy-source", "/bucket/all")];
const ALL: &[Header] = &[
    ("content-type", "text/x-test"),
    ("x-amz-meta-one", "1"),
    ("x-amz-meta-two", "a b  c"),
    ("x-amz-tagging", "a=b&c=d"),
    ("x-amz-website-redirect-location", "/other"),
    ("x-amz-storage-class", "STANDARD_IA"),
    ("x-amz-checksum-crc32c", "yZRlqg=="),
    ("x-amz-acl", "private"),
];

/// Operations in an order in which each finds what it needs.
const ROWS: &[Row] = &[
    ("PUT", "/bucket", &[], b""),
    ("PUT", "/Bucket", &[], b""),
    ("GET", "/", &[], b""),
    ("HEAD", "/bucket", &[], b""),
    ("PUT", "/bucket?lifecycle", &[], RULES),
    ("GET", "/bucket?lifecycle", &[], b""),
    ("PUT", "/bucket/plain", &[], b"hello"),
    ("PUT", "/bucket/all", ALL, b"hello world"),
    ("PUT", "/bucket/expiring", &[("x-amz-checksum-sha256", "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=")], b"hello"),
    ("PUT", "/bucket/wrong", &[("x-amz-checksum-crc32c", "AAAAAQ==")], b"hello world"),
    ("PUT", "/bucket/wrong", &[("x-amz-checksum-crc32c", "!")], b"hello world"),
    ("PUT", "/bucket/wrong", &[("x-amz-checksum-foo", "AAAAAA==")], b"hello world"),
    ("PUT", "/bucket/wrong", &[("x-amz-storage-class", "COLD")], b"hello world"),
    ("PUT", "/bucket/wrong", &[("x-amz-tagging", "a=1&a=2")], b"hello world"),
    ("PUT", "/bucket/wrong", &[("if-match", "\"a\"")], b"hello world"),
    ("PUT", "/bucket/plain", &[("if-none-match", "*")], b"other"),
    ("PUT", "/missing/key", &[], b"hello"),
    ("PUT", "/bucket/wrong?annotation", &[], b"hello"),
    ("GET", "/bucket/plain", &[], b""),
    ("GET", "/bucket/all", &[("x-amz-checksum-mode", "ENABLED")], b""),
    ("HEAD", "/bucket/all", &[("x-amz-checksum-mode", "ENABLED")], b""),
    ("GET", "/bucket/expiring", &[], b""),
    ("GET", "/bucket/all", &[("range", "bytes=0-0,2-3")], b""),
    ("GET", "/bucket/all", &[("range", "Bytes=2-99999999999999999999")], b""),
    ("GET", "/bucket/all", &[("range", "items=0-5")], b""),
    ("GET", "/bucket/all", &[("range", "bytes=50-")], b""),
    ("HEAD", "/bucket/all", &[("range", "bytes=50-")], b""),
    ("HEAD", "/bucket/all", &[("range", "bytes=5-6")], b""),
    ("GET", "/bucket/all", &[("if-none-match", "a_b")], b""),
    ("GET", "/bucket/all", &[("if-match", "a_b")], b""),
    ("GET", "/bucket/all", &[("if-modified-since", "Thu Jan  1 00:00:00 1970")], b""),
    ("GET", "/bucket/all?partNumber=0", &[], b""),
    ("GET", "/bucket/all?partNumber=2", &[], b""),
    ("GET", "/bucket/all?versionId=x", &[], b""),
    ("GET", "/bucket/missing", &[], b""),
    ("HEAD", "/bucket/missing", &[], b""),
    ("GET", "/missing/key", &[], b""),
    ("GET", "/bucket/all?tagging", &[], b""),
    ("PUT", "/bucket/plain?tagging", &[], TAGS),
    ("PUT", "/bucket/plain?tagging", &[], b"<Tagging>"),
    ("DELETE", "/bucket/plain?tagging", &[], b""),
    ("GET", "/bucket/all?acl", &[], b""),
    ("PUT", "/bucket/all?acl", CANNED, b""),
    ("PUT", "/bucket/all?acl", &[], b""),
    ("GET", "/bucket/all?attributes", &[], b""),
    ("GET", "/bucket/all?attributes", &[("x-amz-object-attributes", "ETag,Checksum,ObjectSize")], b""),
    ("PUT", "/bucket/copy", COPIED, b""),
    ("PUT", "/bucket/all", COPIED, b""),
    ("PUT", "/bucket/copy", &[("x-amz-copy-source", "/bucket/missing")], b""),
    ("PUT", "/bucket/xAy", &[], b"hello"),
    ("PUT", "/bucket/xy", &[], b"hello"),
    ("POST", "/bucket?delete", &[], DELETE),
    ("GET", "/bucket?list-type=2", &[], b""),
    ("GET", "/bucket?list-type=2&prefix=x&max-keys=1", &[], b""),
    ("GET", "/bucket?max-keys=-1", &[], b""),
    ("GET", "/bucket", &[], b""),
    ("PUT", "/bucket?cors", &[], CORS),
    ("GET", "/bucket?cors", &[], b""),
    ("DELETE", "/bucket?cors", &[], b""),
    ("GET", "/bucket?cors", &[], b""),
    ("PUT", "/bucket?tagging", &[], TAGS),
    ("GET", "/bucket?tagging", &[], b""),
    ("DELETE", "/bucket?tagging", &[], b""),
    ("PUT", "/bucket?ownershipControls", &[], OWNERSHIP),
    ("GET", "/bucket?ownershipControls", &[], b""),
    ("DELETE", "/bucket?ownershipControls", &[], b""),
    ("PUT", "/bucket?publicAccessBlock", &[], BLOCK),
    ("GET", "/bucket?publicAccessBlock", &[], b""),
    ("DELETE", "/bucket?publicAccessBlock", &[], b""),
    ("PUT", "/bucket?quota", &[], QUOTA),
    ("GET", "/bucket?quota", &[], b""),
    ("DELETE", "/bucket?quota", &[], b""),
    ("PUT", "/bucket?policy", &[], POLICY),
    ("GET", "/bucket?policy", &[], b""),
    ("DELETE", "/bucket?policy", &[], b""),
    ("GET", "/bucket?policy", &[], b""),
    ("GET", "/bucket?versioning", &[], b""),
    ("GET", "/bucket?policyStatus", &[], b""),
    ("GET", "/bucket?location", &[], b""),
    ("GET", "/bucket?website", &[], b""),
    ("PUT", "/bucket?website", &[], WEBSITE),
    ("GET", "/bucket?website", &[], b""),
    ("DELETE", "/bucket?website", &[], b""),
    ("GET", "/bucket?notification", &[], b""),
    ("PUT", "/bucket?notification", &[], b"<NotificationConfiguration/>"),
    ("GET", "/bucket?events=s3%3AObjectCreated%3A%2A", &[], b""),
    ("GET", "/?events=s3%3AObjectCreated%3A%2A", &[], b""),
    ("GET", "/bucket?replication", &[], b""),
    ("GET", "/bucket?requestPayment", &[], b""),
    ("GET", "/bucket?acl", &[], b""),
    ("PUT", "/bucket?acl", CANNED, b""),
    ("PUT", "/bucket?logging", &[], LOGGED),
    ("GET", "/bucket?logging", &[], b""),
    ("PUT", "/bucket?encryption", &[], ENCRYPTED),
    ("GET", "/bucket?encryption", &[], b""),
    ("DELETE", "/bucket?encryption", &[], b""),
    ("GET", "/bucket?object-lock", &[], b""),
    ("PUT", "/locked", WITH_LOCKS, b""),
    ("PUT", "/locked?object-lock", &[], LOCKS),
    ("GET", "/locked?object-lock", &[], b""),
    ("PUT", "/locked/key", &[], b"hello"),
    ("PUT", "/locked/key?retention", &[], RETENTION),
    ("GET", "/locked/key?retention", &[], b""),
    ("PUT", "/locked/key?legal-hold", &[], HOLD),
    ("GET", "/locked/key?legal-hold", &[], b""),
    ("GET", "/locked?versions", &[], b""),
    ("DELETE", "/locked", &[], b""),
    ("POST", "/bucket/parts?uploads", &[("x-amz-checksum-algorithm", "CRC64NVME")], b""),
    ("PUT", "/bucket/parts?partNumber=1&uploadId={upload}", &[], b"part"),
    ("PUT", "/bucket/parts?partNumber=2&uploadId={upload}", COPIED, b""),
    ("PUT", "/bucket/parts?partNumber=0&uploadId={upload}", &[], b"part"),
    ("GET", "/bucket/parts?uploadId={upload}", &[], b""),
    ("GET", "/bucket?uploads", &[], b""),
    ("POST", "/bucket/parts?uploadId={upload}", &[], b"<CompleteMultipartUpload><Part><PartNumber>1\
        </PartNumber><ETag>\"f4c9385f1902f7334b00b9b4ecd164de\"</ETag></Part></CompleteMultipartUpload>"),
    ("DELETE", "/bucket/parts?uploadId={upload}", &[], b""),
    ("DELETE", "/bucket/parts?uploadId={upload}", &[], b""),
    ("DELETE", "/bucket/plain", &[], b""),
    ("DELETE", "/bucket/plain", &[], b""),
    ("PUT", "/bucket?versioning", &[], VERSIONING),
    ("GET", "/bucket?versioning", &[], b""),
    ("DELETE", "/bucket?lifecycle", &[], b""),
    ("DELETE", "/bucket", &[], b""),
];

/// Requests that version 2 cannot sign, because their parameters are younger.
const NOT_V2: [&str; 12] = [
    "?annotation",
    "?attributes",
    "?encryption",
    "?events=",
    "?legal-hold",
    "?object-lock",
    "?ownershipControls",
    "?policyStatus",
    "?publicAccessBlock",
    "?quota",
    "?retention",
    "?tagging",
];

/// A server, and the upload that was started last.
struct Session {
    way: Way,
    server: Running,
    upload: String,
}

impl Session {
    fn new(way: Way) -> Self {
        let credentials = Credentials { access_key: ACCESS.into(), secret_key: SECRET.into() };
        let credentials = (way != Way::Open).then_some(credentials);
        let server = Running::with(credentials, Limits::default());
        Self { way, server, upload: String::new() }
    }

    /// Sends a request, and returns what its answer is, without what differs each time.
    fn answer(&mut self, row: &Row) -> (u16, Vec<(String, String)>, String) {
        let &(method, target, headers, body) = row;
        let target = target.replace("{upload}", &self.upload);
        let reply = self.send(method, &target, headers, body);
        if let Some(upload) = reply.xml("UploadId") {
            self.upload = upload;
        }
        let differs = [
            "connection",
            "content-length",
            "date",
            "last-modified",
            "x-amz-request-id",
            "x-amz-version-id",
        ];
        let headers = reply.headers().iter().filter(|(name, _)| !differs.contains(&&**name));
        let mut headers: Vec<_> = headers.cloned().collect();
        headers.sort();
        let mut text = reply.text().replace(&self.server.s3.0.address.to_string(), "{host}");
        if !self.upload.is_empty() {
            text = text.replace(&self.upload, "{upload}");
        }
        let names = ["RequestId", "LastModified", "CreationDate", "Initiated", "VersionId"];
        for content in names.iter().flat_map(|name| reply.all_xml(name)) {
            text = text.replace(&content, "");
        }
        (reply.status, headers, text)
    }

    fn send(&self, method: &str, target: &str, headers: &[Header], body: &[u8]) -> Reply {
        let signer = Signer { client: self.server.s3, access_key: ACCESS, secret_key: SECRET };
        let is_object = method == "PUT"
            && !body.is_empty()
            && (!target.contains('?') || target.contains("?partNumber"))
            && target[1..].contains('/');
        let length = body.len().to_string();
        let chunked = |trailer| {
            let mut all = vec![
                ("x-amz-decoded-content-length", &*length),
                ("content-encoding", "aws-chunked"),
            ];
            if trailer {
                all.push(("x-amz-trailer", "x-amz-checksum-crc64nvme"));
            }
            [&all, headers].concat()
        };
        let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, body).to_be_bytes();
        let field =
            format!("x-amz-checksum-crc64nvme:{}", base64_simd::STANDARD.encode_to_string(crc));
        // A request has one checksum.
        let has_checksum = headers.iter().any(|(name, _)| name.starts_with("x-amz-checksum"));
        match self.way {
            Way::Open => self.server.s3.send(method, target, headers, body),
            Way::UrlV4 => {
                let (amz, others) = split(headers);
                let target = signer.presign_with(method, target, &amz);
                self.server.s3.send(method, &target, &others, body)
            }
            Way::UrlV2 => {
                let (amz, others) = split(headers);
                let content_type = others.iter().filter(|(name, _)| *name == "content-type");
                let signed: Vec<_> = amz.iter().chain(content_type).copied().collect();
                let target = signer.presign_v2(method, target, &signed);
                self.server.s3.send(method, &target, &others, body)
            }
            Way::UnsignedBody => {
                let word = "UNSIGNED-PAYLOAD";
                signer.send_with(method, target, word, headers, |_| body.to_vec())
            }
            Way::SignedChunks if is_object => {
                let word = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
                signer.send_with(method, target, word, &chunked(false), |seed| seed.chunks(&[body]))
            }
            Way::SignedTrailer if is_object && !has_checksum => {
                let word = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER";
                signer.send_with(method, target, word, &chunked(true), |seed| {
                    seed.chunks_with_trailer(body, &field)
                })
            }
            Way::UnsignedTrailer if is_object && !has_checksum => {
                let word = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
                signer.send_with(method, target, word, &chunked(true), |_| {
                    let size = format!("{:x}\r\n", body.len());
                    let end = format!("\r\n0\r\n{field}\r\n\r\n");
                    [size.as_bytes(), body, end.as_bytes()].concat()
                })
            }
            Way::Hash | Way::SignedChunks | Way::SignedTrailer | Way::UnsignedTrailer => {
                signer.send_with(method, target, &hash(body), headers, |_| body.to_vec())
            }
        }
    }
}

/// Returns the headers of AWS, and the others.
fn split<'a>(headers: &[Header<'a>]) -> (Vec<Header<'a>>, Vec<Header<'a>>) {
    headers.iter().copied().partition(|(name, _)| name.starts_with("x-amz-"))
}

#[test]
fn answer_does_not_depend_on_the_signature() {
    let mut sessions = WAYS.map(Session::new);
    for row in ROWS {
        let [first, others @ ..] = &mut sessions;
        let expected = first.answer(row);
        for session in others {
            let is_v2 = session.way == Way::UrlV2;
            if is_v2 && NOT_V2.iter().any(|name| row.1.contains(name)) {
                // The bucket must be the same for the requests that follow.
                session.way = Way::Hash;
            }
            let found = session.answer(row);
            assert_eq!(found, expected, "{:?} {} {} {:?}", session.way, row.0, row.1, row.2);
            if is_v2 {
                session.way = Way::UrlV2;
            }
        }
    }
}

#[test]
fn every_operation_has_a_row() {
    let table = include_str!("../../src/request/operation.rs");
    let table = table.split("\noperations! {").nth(1).unwrap().split("\n}\n").next().unwrap();
    let mut count = 0;
    for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, route) = line.trim_end_matches(';').split_once(": ").unwrap();
        let mut words = route.split_whitespace();
        let (method, level) = (words.next().unwrap(), words.next().unwrap());
        let parameters: Vec<_> = words.map(|word| word.trim_matches(['[', ']', '"'])).collect();
        let is_row = |(found, target, headers, _): &Row| {
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            let found_level = match path.matches('/').count() {
                2 => "Object",
                _ if path == "/" => "Root",
                _ => "Bucket",
            };
            let has = |wanted: &&str| query.split('&').any(|p| p.split('=').next() == Some(wanted));
            let is_copy = headers == &COPIED;
            (*found, found_level) == (method, level)
                && parameters.iter().all(has)
                && is_copy == name.contains("Copy")
        };
        assert!(ROWS.iter().any(is_row), "{name} has no row");
        count += 1;
    }
    assert!(count > 60, "{count}");
}

#[test]
fn body_of_any_length_is_stored_in_every_framing() {
    let mut sessions = WAYS.map(Session::new);
    for session in &mut sessions {
        assert_eq!(session.send("PUT", "/bucket", &[], b"").status, 200);
        for bytes in [0, 1, 100, 8191, 8192, 8193, 65_536, 1 << 20, 5_000_000] {
            let body = noise(bytes);
            let put = session.send("PUT", "/bucket/key", &[], &body);
            assert_eq!(put.status, 200, "{:?} {bytes} {}", session.way, put.text());
            let got = session.send("GET", "/bucket/key", &[], b"");
            assert!(got.body() == body, "{:?} {bytes}", session.way);
        }
    }
}
