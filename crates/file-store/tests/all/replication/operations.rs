//! All operations of a store that append to its log.

use std::time::{Duration, UNIX_EPOCH};

use haul_file_store::{
    Attributes, Expiry, Lifecycle, LifecycleRule, ListRequest, NewObject, Precondition, Result,
    Store, WrittenContent,
};
use haul_testing::eventually;

use crate::{BIG, BUCKET, random_bytes, uploads_of};

/// The key of the operations.
pub(super) const KEY: &str = "key";

/// The key of an upload.
const UPLOAD: &str = "upload";

/// An operation, the state that it needs, and the state that it leaves.
pub(super) struct Operation {
    pub(super) name: &'static str,
    pub(super) prepare: fn(&Store),
    pub(super) act: fn(&Store) -> Result<()>,
    /// Returns `true` if the change is visible.
    pub(super) is_visible: fn(&Store) -> bool,
}

fn store_key(store: &Store, bytes: &[u8], precondition: &Precondition) -> Result<()> {
    store.put(BUCKET, KEY, bytes, &Attributes::new(), precondition).map(drop)
}

fn put_big(store: &Store) -> Result<()> {
    store_key(store, &random_bytes(1, 2 * BIG), &Precondition::None)
}

fn put_small(store: &Store) -> Result<()> {
    store_key(store, b"small", &Precondition::None)
}

fn written(store: &Store, length: usize) -> WrittenContent {
    let mut writer = store.object_writer(BUCKET, None).unwrap();
    writer.write(&random_bytes(2, length)).unwrap();
    writer.finish().unwrap()
}

fn put_written(store: &Store, length: usize) -> Result<()> {
    let none = &Attributes::new();
    store.put_written(BUCKET, KEY, written(store, length), none, &Precondition::None).map(drop)
}

/// Stores objects in several batches: one key is repeated, and the last object is big.
fn put_many(store: &Store) -> Result<()> {
    put_keys(store, &["a", KEY, "a", "b"], &Precondition::None)
}

fn put_keys(store: &Store, keys: &[&str], precondition: &Precondition) -> Result<()> {
    let (big, attributes) = (random_bytes(3, BIG), &Attributes::new());
    let object = |key| NewObject { key, bytes: b"small", attributes, precondition };
    let mut objects: Vec<_> = keys.iter().map(|key| object(key)).collect();
    objects.last_mut().unwrap().bytes = &big;
    store.put_many(BUCKET, &objects).into_iter().try_for_each(|outcome| outcome.map(drop))
}

fn copy(store: &Store, to: &str) -> Result<()> {
    store.copy((BUCKET, KEY), (BUCKET, to), None, &Precondition::None).map(drop)
}

fn delete_many(store: &Store, keys: &[&str]) -> Result<()> {
    store.delete_many(BUCKET, keys).into_iter().try_for_each(|outcome| outcome.map(drop))
}

fn start_upload(store: &Store) -> Result<()> {
    store.start_upload(BUCKET, UPLOAD, &Attributes::new()).map(drop)
}

/// Returns the ID of the only upload.
fn upload(store: &Store) -> String {
    uploads_of(store, BUCKET).unwrap().pop().unwrap().id
}

fn complete(store: &Store) -> Result<()> {
    let (id, none) = (upload(store), &Attributes::new());
    let parts = store.parts(BUCKET, UPLOAD, &id)?;
    let parts: Vec<_> = parts.iter().map(|part| (part.number, part.etag)).collect();
    store.complete_upload(BUCKET, UPLOAD, &id, &parts, none, &Precondition::None).map(drop)
}

fn has(store: &Store, key: &str) -> bool {
    store.stat(BUCKET, key).is_ok()
}

fn length(store: &Store, key: &str) -> usize {
    store.stat(BUCKET, key).map_or(0, |info| usize::try_from(info.bytes).unwrap())
}

/// Returns rules by which all objects and uploads that exist are expired.
fn expired() -> Lifecycle {
    let rule = LifecycleRule {
        enabled: true,
        expire: Some(Expiry::At(UNIX_EPOCH)),
        ..LifecycleRule::default()
    };
    let aborts = LifecycleRule {
        id: "uploads".to_owned(),
        abort_uploads_after: Some(Duration::from_millis(1)),
        expire: None,
        ..rule.clone()
    };
    Lifecycle { rules: vec![rule, aborts] }
}

/// Sets the rules that make everything expired.
pub(super) fn set_rules(store: &Store) -> Result<()> {
    store.set_lifecycle(BUCKET, &expired())
}

/// Returns `true` if the bucket has neither objects nor uploads.
pub(super) fn is_empty(store: &Store) -> bool {
    let listed = store.list(BUCKET, &ListRequest { limit: 1, ..ListRequest::default() }).unwrap();
    listed.entries.is_empty() && uploads_of(store, BUCKET).unwrap().is_empty()
}

/// Returns operations in an order in which each changes the store.
pub(super) fn changes() -> Vec<Operation> {
    let change = |name, prepare, act, is_visible| Operation { name, prepare, act, is_visible };
    let nothing: fn(&Store) = |_| {};
    vec![
        change("create a bucket", nothing, |s| s.create_bucket("new"), |s| s.bucket("new").is_ok()),
        change(
            "delete a bucket",
            nothing,
            |s| s.delete_bucket("new"),
            |s| s.bucket("new").is_err(),
        ),
        change("put", nothing, put_small, |s| has(s, KEY)),
        change("put a big object", nothing, put_big, |s| length(s, KEY) == 2 * BIG),
        change("copy a big object", nothing, |s| copy(s, "copy"), |s| length(s, "copy") == 2 * BIG),
        change("put written", nothing, |s| put_written(s, 7), |s| length(s, KEY) == 7),
        change("copy", nothing, |s| copy(s, "copy"), |s| length(s, "copy") == 7),
        change("put a written file", nothing, |s| put_written(s, BIG), |s| length(s, KEY) == BIG),
        change("delete", nothing, |s| s.delete(BUCKET, KEY).map(drop), |s| !has(s, KEY)),
        change("put many", nothing, put_many, |s| has(s, "a") && has(s, "b")),
        change(
            "delete many",
            |s| put_small(s).unwrap(),
            |s| delete_many(s, &["a", "absent", KEY, "a"]),
            |s| !has(s, "a") && !has(s, KEY),
        ),
        change("start an upload", nothing, start_upload, |s| {
            uploads_of(s, BUCKET).unwrap().len() == 1
        }),
        change("put a part", nothing, put_first_part, |s| {
            s.parts(BUCKET, UPLOAD, &upload(s)).unwrap().len() == 1
        }),
        change("complete an upload", nothing, complete, |s| has(s, UPLOAD)),
        change(
            "abort an upload",
            |s| start_upload(s).unwrap(),
            |s| s.abort_upload(BUCKET, UPLOAD, &upload(s)),
            |s| uploads_of(s, BUCKET).unwrap().is_empty(),
        ),
        change(
            "set rules",
            |s| start_upload(s).unwrap(),
            set_rules,
            |s| s.lifecycle(BUCKET).unwrap() == expired(),
        ),
        change("expire", prepare_expired_upload, |s| s.expire_now(BUCKET).map(drop), is_empty),
    ]
}

/// Sets the rules, and waits until an upload is stale.
fn prepare_expired_upload(store: &Store) {
    set_rules(store).unwrap();
    eventually("the upload is stale", || {
        store.expirable(BUCKET, &mut |_| true).unwrap().aborted_uploads > 0
    });
}

fn put_first_part(store: &Store) -> Result<()> {
    let mut writer = store.part_writer(BUCKET, None)?;
    writer.write(b"part")?;
    let (written, none) = (writer.finish()?, Attributes::new());
    store.put_part(BUCKET, UPLOAD, &upload(store), 1, written, &none).map(drop)
}

/// Returns operations that change nothing in a store whose bucket has the object [`KEY`].
pub(super) fn without_change() -> Vec<Operation> {
    let none = |name, act| Operation { name, prepare: |_| {}, act, is_visible: |_| false };
    vec![
        none("create an existing bucket", |s| s.create_bucket(BUCKET)),
        none("delete a missing bucket", |s| s.delete_bucket("absent")),
        none("delete a full bucket", |s| s.delete_bucket(BUCKET)),
        none("put with a failed precondition", |s| store_key(s, b"x", &Precondition::Absent)),
        none("put into a missing bucket", |s| {
            s.put("absent", KEY, b"x", &Attributes::new(), &Precondition::None).map(drop)
        }),
        none("put many refused objects", |s| put_keys(s, &[KEY, KEY], &Precondition::Absent)),
        none("put no objects", |s| {
            assert!(s.put_many(BUCKET, &[]).is_empty());
            Ok(())
        }),
        none("copy a missing key", |s| {
            s.copy((BUCKET, "absent"), (BUCKET, "b"), None, &Precondition::None).map(drop)
        }),
        none("abort a missing upload", |s| s.abort_upload(BUCKET, UPLOAD, "absent")),
        none("expire without rules", |s| s.expire_now(BUCKET).map(drop)),
        none("compact", |s| s.compact().map(drop)),
        none("start a put", |s| {
            let none = Attributes::new();
            assert!(s.start_put(BUCKET, KEY, b"x", &none, &Precondition::None)?.is_none());
            Ok(())
        }),
        none("read", |s| s.get(BUCKET, KEY).map(drop)),
    ]
}
