//! Stores that the server of a released version has written, from the archives
//! `tests/fixtures/served-VERSION.tar.gz`, with versions, delete markers, locks, tags, a lifecycle
//! and encrypted objects. Every later version must serve them.

use std::path::Path;

use haul_file_store::Store;
use haul_testing::fixtures;

use crate::client::{Header, Running, assert_refused, small};

/// The directories of an archive: a store that was closed, and one as a killed process left it.
const STORES: [&str; 2] = ["closed", "killed"];

/// The file with the encryption key of the archives, which protects nothing.
const KEYS: &str = "haul-encryption-key-1 6b+WOZ1T3cqZMxgThRcXAQBrS5mXKdDUphvpxptl9/4=";

const CUSTOMER: [Header<'_>; 3] = [
    ("x-amz-server-side-encryption-customer-algorithm", "AES256"),
    ("x-amz-server-side-encryption-customer-key", "pO3upElrwuEXSoFwCfnZPdSsmt/xWeFa0N9KgDijwVs="),
    ("x-amz-server-side-encryption-customer-key-md5", "DWygnHRtgiJ77HCm+1rvHw=="),
];
const SSE_S3: Header<'_> = ("x-amz-server-side-encryption", "AES256");
const BYPASS: Header<'_> = ("x-amz-bypass-governance-retention", "true");
const UNTIL: &str = "2099-01-01T00:00:00.000Z";

const LIFECYCLE: &str = "<LifecycleConfiguration><Rule><ID>old</ID><Filter><Prefix>tmp/</Prefix>\
    </Filter><Status>Enabled</Status><NoncurrentVersionExpiration><NoncurrentDays>30</NoncurrentDays>\
    <NewerNoncurrentVersions>2</NewerNoncurrentVersions></NoncurrentVersionExpiration></Rule>\
    </LifecycleConfiguration>";
const DEFAULT_ENCRYPTION: &str = "<ServerSideEncryptionConfiguration><Rule>\
    <ApplyServerSideEncryptionByDefault><SSEAlgorithm>AES256</SSEAlgorithm>\
    </ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>";
const DEFAULT_RETENTION: &str = "<ObjectLockConfiguration>\
    <ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention><Mode>GOVERNANCE</Mode>\
    <Years>50</Years></DefaultRetention></Rule></ObjectLockConfiguration>";

/// The listed versions of the bucket `plain`: the key, `null` for that version, and the content;
/// `None` for a delete marker.
const PLAIN: [(&str, bool, Option<&str>); 5] = [
    ("doc", false, Some("third")),
    ("doc", true, Some("null")),
    ("doc", false, Some("first")),
    ("gone", false, None),
    ("gone", false, Some("deleted")),
];

/// Returns content that compresses well, and is longer than a segment of encrypted objects.
fn long() -> Vec<u8> {
    (0..70_000_u32).map(|n| (n >> 10).to_le_bytes()[0]).collect()
}

/// Sends a request that must succeed. Returns the version ID of the response.
#[track_caller]
fn send(
    server: &Running,
    method: &str,
    target: &str,
    headers: &[Header<'_>],
    body: &[u8],
) -> String {
    let reply = server.s3.send(method, target, headers, body);
    assert!((200..300).contains(&reply.status), "{method} {target}: {}", reply.text());
    reply.header("x-amz-version-id").unwrap_or_default().to_owned()
}

fn versioning(status: &str) -> String {
    format!("<VersioningConfiguration><Status>{status}</Status></VersioningConfiguration>")
}

/// Sends the requests that make the content of an archive.
fn fill(server: &Running) {
    let put = |target: &str, headers: &[Header<'_>], body: &[u8]| {
        send(server, "PUT", target, headers, body)
    };
    put("/plain", &[], b"");
    for (status, body) in [("Enabled", "first"), ("Suspended", "null"), ("Enabled", "third")] {
        put("/plain?versioning", &[], versioning(status).as_bytes());
        let headers = [("x-amz-tagging", "a=b"), ("x-amz-meta-m", body)];
        put("/plain/doc", &headers, body.as_bytes());
    }
    put("/plain/gone", &[], b"deleted");
    send(server, "DELETE", "/plain/gone", &[], b"");
    put("/plain?lifecycle", &[], LIFECYCLE.as_bytes());

    put("/locked", &[("x-amz-bucket-object-lock-enabled", "true")], b"");
    put("/locked/hold", &[("x-amz-object-lock-legal-hold", "ON")], b"held");
    for (key, mode) in [("governance", "GOVERNANCE"), ("compliance", "COMPLIANCE")] {
        let mode = ("x-amz-object-lock-mode", mode);
        let until = ("x-amz-object-lock-retain-until-date", UNTIL);
        put(&format!("/locked/{key}"), &[mode, until], key.as_bytes());
        send(server, "DELETE", &format!("/locked/{key}"), &[], b"");
    }
    put("/locked?object-lock", &[], DEFAULT_RETENTION.as_bytes());
    put("/locked/default", &[], b"by default");

    put("/sealed", &[], b"");
    put("/sealed/customer", &CUSTOMER, &long());
    put("/sealed/operator", &[SSE_S3, ("x-amz-tagging", "a=b")], &long());
    put("/sealed/copy", &[SSE_S3, ("x-amz-copy-source", "/sealed/operator")], b"");
    put("/sealed?encryption", &[], DEFAULT_ENCRYPTION.as_bytes());
    put("/sealed/default", &[], b"by default");
    put("/sealed/empty", &[], b"");
    let started = server.s3.send("POST", "/sealed/parts?uploads", &[SSE_S3], b"");
    let target = format!("/sealed/parts?uploadId={}", started.xml("UploadId").unwrap());
    let part = server.s3.put(&format!("{target}&partNumber=1"), b"in one part");
    let entry = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{}</ETag></Part>\
         </CompleteMultipartUpload>",
        part.header("etag").unwrap()
    );
    send(server, "POST", &target, &[], entry.as_bytes());
}

/// Checks the versions of the bucket `plain`.
fn check_versions(server: &Running, about: &str) {
    let listed = server.s3.get("/plain?versions");
    let (versions, markers) = (listed.all_xml("Version"), listed.all_xml("DeleteMarker"));
    let objects = PLAIN.iter().filter_map(|(key, is_null, body)| Some((key, is_null, (*body)?)));
    assert_eq!((versions.len(), markers.len()), (4, 1), "{about}: {}", listed.text());
    for (entry, (key, is_null, body)) in versions.iter().zip(objects) {
        let id = text_of(entry, "VersionId");
        assert_eq!(
            (&text_of(entry, "Key"), id == "null"),
            (&(*key).to_owned(), *is_null),
            "{about}"
        );
        let found = server.s3.get(&format!("/plain/{key}?versionId={id}"));
        assert_eq!(found.text(), body, "{about}");
        if *key == "doc" {
            assert_eq!(found.header("x-amz-meta-m"), Some(body), "{about}");
            let tags = server.s3.get(&format!("/plain/doc?tagging&versionId={id}"));
            assert_eq!(tags.all_xml("Value"), ["b"], "{about}");
        }
    }
    let marker = text_of(&markers[0], "VersionId");
    assert_eq!(text_of(&markers[0], "Key"), "gone", "{about}");
    let gone = server.s3.get("/plain/gone");
    assert_eq!((gone.status, gone.header("x-amz-version-id")), (404, Some(&*marker)), "{about}");
    let lifecycle = server.s3.get("/plain?lifecycle");
    for (name, value) in [
        ("ID", "old"),
        ("Prefix", "tmp/"),
        ("NoncurrentDays", "30"),
        ("NewerNoncurrentVersions", "2"),
    ] {
        assert_eq!(lifecycle.xml(name).as_deref(), Some(value), "{about}");
    }
    let state = server.s3.get("/plain?versioning").xml("Status");
    assert_eq!(state.as_deref(), Some("Enabled"), "{about}");
}

/// Checks that the versions of the bucket `locked` have their locks, which protect them.
fn check_locks(server: &Running, about: &str) {
    let listed = server.s3.get("/locked?versions");
    let entries = listed.all_xml("Version");
    let keys: Vec<_> = listed.all_xml("Version").iter().map(|it| text_of(it, "Key")).collect();
    assert_eq!(keys, ["compliance", "default", "governance", "hold"], "{about}");
    assert_eq!(listed.all_xml("DeleteMarker").len(), 2, "{about}");
    let (mode, until, hold) = (
        "x-amz-object-lock-mode",
        "x-amz-object-lock-retain-until-date",
        "x-amz-object-lock-legal-hold",
    );
    for (entry, expected, body) in [
        (&entries[0], [Some("COMPLIANCE"), Some(UNTIL), None], "compliance"),
        (&entries[1], [Some("GOVERNANCE"), None, None], "by default"),
        (&entries[2], [Some("GOVERNANCE"), Some(UNTIL), None], "governance"),
        (&entries[3], [None, None, Some("ON")], "held"),
    ] {
        let (key, id) = (text_of(entry, "Key"), text_of(entry, "VersionId"));
        let target = format!("/locked/{key}?versionId={id}");
        let found = server.s3.get(&target);
        assert_eq!(found.text(), body, "{about}");
        let is_default = key == "default";
        for (name, value) in [mode, until, hold].into_iter().zip(expected) {
            let shown = found.header(name).filter(|_| !(is_default && name == until));
            assert_eq!(shown, value, "{about}: {target} {name}");
        }
        assert_refused(&server.s3.delete(&target), 403, "AccessDenied");
        if expected[0] != Some("GOVERNANCE") {
            let bypassed = server.s3.send("DELETE", &target, &[BYPASS], b"");
            assert_refused(&bypassed, 403, "AccessDenied");
        }
    }
    let configuration = server.s3.get("/locked?object-lock");
    assert_eq!(configuration.xml("Years").as_deref(), Some("50"), "{about}");
}

/// Returns the content of the first XML element with this name.
fn text_of(entry: &str, name: &str) -> String {
    let rest = entry.split_once(&format!("<{name}>")).unwrap().1;
    rest.split('<').next().unwrap().to_owned()
}

/// Checks the encrypted objects.
fn check_encrypted(server: &Running, about: &str) {
    let customer = server.s3.send("GET", "/sealed/customer", &CUSTOMER, b"");
    assert!(customer.is_whole() && customer.body == long(), "{about}");
    assert_refused(&server.s3.get("/sealed/customer"), 400, "InvalidRequest");
    for key in ["operator", "copy"] {
        let target = format!("/sealed/{key}");
        let found = server.s3.get(&target);
        assert!(found.is_whole() && found.body == long(), "{about}: {key}");
        assert_eq!(found.header(SSE_S3.0), Some("AES256"), "{about}: {key}");
        assert_eq!(found.header("x-amz-tagging-count"), Some("1"), "{about}: {key}");
        let part = server.s3.send("GET", &target, &[("range", "bytes=65530-65540")], b"");
        assert_eq!((part.status, part.body()), (206, &long()[65_530..65_541]), "{about}: {key}");
    }
    for (key, body) in [("default", "by default"), ("empty", ""), ("parts", "in one part")] {
        let found = server.s3.get(&format!("/sealed/{key}"));
        assert_eq!((found.status, found.text().as_str()), (200, body), "{about}: {key}");
        assert_eq!(found.header(SSE_S3.0), Some("AES256"), "{about}: {key}");
    }
    let default = server.s3.get("/sealed?encryption").xml("SSEAlgorithm");
    assert_eq!(default.as_deref(), Some("AES256"), "{about}");
}

fn check_content(server: &Running, about: &str) {
    check_versions(server, about);
    check_locks(server, about);
    check_encrypted(server, about);
}

/// Serves the stores of an archive, compacts them, and serves them again. Without the key of the
/// operator, only his objects are unreadable.
fn check(archive: &Path, version: &str) {
    for name in STORES {
        let about = format!("{version} {name}");
        let mut dir = tempfile::tempdir().unwrap();
        fixtures::copy_files(&archive.join(name), dir.path());
        let marker = std::fs::read_to_string(dir.path().join("STORE")).unwrap();
        assert_eq!(marker, "haul file store, version 1\n", "{about}");
        for round in 0..2 {
            let server = Running::with_encryption(dir, Some(KEYS));
            check_content(&server, &about);
            send(&server, "PUT", "/sealed/new", &[], &crate::client::noise(100_000));
            dir = server.into_dir();
            let (store, recovered) = Store::open(dir.path(), small()).unwrap();
            assert_eq!(recovered.damage, [], "{about}");
            assert_eq!(store.verify(&mut |_, _| {}).unwrap().damage, [], "{about}");
            if round == 0 {
                store.compact().unwrap();
            }
            store.close().unwrap();
        }
        let server = Running::with_encryption(dir, None);
        check_locks(&server, &about);
        assert!(server.s3.get("/sealed/operator").status >= 400, "{about}");
    }
}

#[test]
fn stores_of_released_versions_are_served() {
    for (version, dir) in fixtures::release_fixtures(env!("CARGO_MANIFEST_DIR"), "served") {
        check(dir.path(), &version);
    }
}

#[test]
fn store_of_this_version_passes_the_test_of_releases() {
    if crate::client::needs_one_directory() {
        return;
    }
    let archive = tempfile::tempdir().unwrap();
    let server = Running::with_encryption(tempfile::tempdir().unwrap(), Some(KEYS));
    fill(&server);
    fixtures::copy_files(server.dir(), &archive.path().join(STORES[1]));
    let dir = server.into_dir();
    fixtures::copy_files(dir.path(), &archive.path().join(STORES[0]));
    fixtures::save(archive.path(), "served", env!("CARGO_PKG_VERSION"));
    check(archive.path(), "this version");
}
