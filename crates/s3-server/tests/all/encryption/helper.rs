//! Keys, headers and requests of the tests of encryption.

use std::fs;
use std::path::Path;

use haul_s3_server::EncryptionKey;

use crate::client::{Header, Reply, Running};

pub(super) const SEGMENT: usize = 64 << 10;
pub(super) const PART_BYTES: usize = 5 << 20;

const ALGORITHM: Header<'_> = ("x-amz-server-side-encryption-customer-algorithm", "AES256");
const KEY: &str = "x-amz-server-side-encryption-customer-key";
pub(super) const KEY_MD5: &str = "x-amz-server-side-encryption-customer-key-md5";
pub(super) const A: [Header<'_>; 3] = [
    ALGORITHM,
    (KEY, "pO3upElrwuEXSoFwCfnZPdSsmt/xWeFa0N9KgDijwVs="),
    (KEY_MD5, "DWygnHRtgiJ77HCm+1rvHw=="),
];
pub(super) const B: [Header<'_>; 3] = [
    ALGORITHM,
    (KEY, "6b+WOZ1T3cqZMxgThRcXAQBrS5mXKdDUphvpxptl9/4="),
    (KEY_MD5, "arxBvwY2V4SiOne6yppVPQ=="),
];
pub(super) const SOURCE_A: [Header<'_>; 3] = [
    ("x-amz-copy-source-server-side-encryption-customer-algorithm", "AES256"),
    ("x-amz-copy-source-server-side-encryption-customer-key", A[1].1),
    ("x-amz-copy-source-server-side-encryption-customer-key-md5", A[2].1),
];
pub(super) const SSE_S3: Header<'_> = ("x-amz-server-side-encryption", "AES256");

pub(super) const KEY_NAME: &str = "x-amz-server-side-encryption-aws-kms-key-id";
pub(super) const TAX: [Header<'_>; 2] =
    [("x-amz-server-side-encryption", "aws:kms"), (KEY_NAME, "tax")];

pub(super) const DEFAULT: &str = "<ServerSideEncryptionConfiguration><Rule>\
    <ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm>\
    </ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>";

pub(super) fn key_text() -> String {
    EncryptionKey::generate().unwrap().to_text()
}

/// Returns a key with a name.
pub(super) fn named_key_text(name: &str) -> String {
    EncryptionKey::generate().unwrap().with_name(name).unwrap().to_text()
}

/// Returns a server with encryption keys, one of which has the name `tax`, and a bucket named
/// `bucket`.
pub(super) fn server() -> Running {
    let keys = key_text() + &named_key_text("tax");
    let server = Running::with_encryption(tempfile::tempdir().unwrap(), Some(&keys));
    assert_eq!(server.s3.put("/bucket", b"").status, 200);
    server
}

pub(super) fn put(server: &Running, target: &str, headers: &[Header<'_>], body: &[u8]) -> Reply {
    let reply = server.s3.send("PUT", target, headers, body);
    assert_eq!(reply.status, 200, "{target}: {}", reply.text());
    reply
}

pub(super) fn get(server: &Running, target: &str, headers: &[Header<'_>]) -> Reply {
    server.s3.send("GET", target, headers, b"")
}

/// Returns `true` if a file of the store has these bytes.
pub(super) fn is_stored(dir: &Path, wanted: &[u8]) -> bool {
    fs::read_dir(dir).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => is_stored(&path, wanted),
            false => {
                let bytes = fs::read(path).unwrap();
                bytes.windows(wanted.len()).any(|window| window == wanted)
            }
        }
    })
}

pub(super) fn etag(reply: &Reply) -> String {
    reply.header("etag").unwrap().to_owned()
}
