//! Stored bytes and attributes of encrypted objects that were changed.

use haul_file_store::{Attributes, Precondition};
use haul_store_pool::Pool;

use super::helper::{SEGMENT, SSE_S3, get, key_text, put};
use crate::client::{Running, assert_refused, noise, small};

/// Changes the object `bucket/changed` to these stored bytes and attributes.
fn change(store: &Pool, bytes: &[u8], attributes: &Attributes) {
    let mut writer = store.object_writer("bucket", "changed", Some(bytes.len() as u64)).unwrap();
    writer.write(bytes).unwrap();
    let written = writer.finish().unwrap().encoded([1; 16]);
    let none = Precondition::None;
    store.put_written("bucket", "changed", written, attributes, &none).unwrap();
}

#[test]
fn changed_objects_are_refused() {
    let keys = key_text();
    let mut dir = tempfile::tempdir().unwrap();
    let body = noise(3 * SEGMENT);
    let changes = [
        "none",
        "a bit",
        "cut",
        "swapped",
        "appended",
        "of another object",
        "other attributes",
        "no attributes",
        "not marked",
    ];
    for changed in changes {
        let server = Running::with_encryption(dir, Some(&keys));
        server.s3.put("/bucket", b"");
        put(&server, "/bucket/changed", &[SSE_S3], &body);
        put(&server, "/bucket/other", &[SSE_S3], &body);
        dir = server.into_dir();
        let store = crate::client::open(dir.path(), small());
        let read = |key| {
            let object = store.get("bucket", key).unwrap();
            let length = usize::try_from(object.info.bytes).unwrap();
            (object.read(0, length).unwrap().to_vec(), object.attributes)
        };
        let ((mut bytes, mut attributes), other) = (read("changed"), read("other"));
        let sealed = SEGMENT + 16;
        match changed {
            "a bit" => bytes[32 + sealed] ^= 1,
            "cut" => bytes.truncate(32 + 2 * sealed),
            "swapped" => bytes[32..32 + 2 * sealed].rotate_left(sealed),
            "appended" => bytes.extend_from_slice(&other.0[32..]),
            "of another object" => bytes = other.0,
            "other attributes" => (bytes, attributes) = other,
            "no attributes" => attributes = Attributes::new(),
            _ => {}
        }
        match changed {
            "not marked" => {
                let none = Precondition::None;
                drop(store.put("bucket", "changed", &bytes, &attributes, &none).unwrap());
            }
            _ => change(&store, &bytes, &attributes),
        }
        store.close().unwrap();
        let server = Running::with_encryption(dir, Some(&keys));
        // Each segment is verified before it is sent.
        let range = [("range", "bytes=65536-65540")];
        let (got, part) =
            (server.s3.get("/bucket/changed"), get(&server, "/bucket/changed", &range));
        if changed == "none" {
            assert!(got.body == body && part.body == body[65536..65541]);
        } else {
            assert_refused(&got, 500, "InternalError");
            assert_refused(&part, 500, "InternalError");
        }
        dir = server.into_dir();
    }
}
