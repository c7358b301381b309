//! The operations on versions.

use std::time::UNIX_EPOCH;

use haul_file_store::{
    Attributes, Deleted, Error, Expiry, Lifecycle, LifecycleRule, ListRequest, ListUploadsRequest,
    ListVersionsRequest, Precondition, Result, Store, VersionId, VersionListEntry, Versioning,
};
use haul_testing::{Random, seed};

use super::contents::list_all;
use crate::{BIG, BUCKET, big_files, content, get, new_store, put, reopen, try_get, try_put};

/// Creates a store whose bucket has versions.
fn versioned() -> (tempfile::TempDir, Store) {
    let (dir, store) = new_store();
    store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    (dir, store)
}

fn version(store: &Store, key: &str, id: VersionId) -> Vec<u8> {
    content(&store.get_version(BUCKET, key, id).unwrap()).unwrap()
}

fn delete(store: &Store, key: &str, id: Option<VersionId>) -> Deleted {
    store.delete_object(BUCKET, key, id).unwrap()
}

/// Returns the IDs of a key, from newest to oldest.
fn ids(store: &Store, key: &str) -> Vec<VersionId> {
    let has_key = |version: &haul_file_store::VersionInfo| version.info.key == key;
    list_all(store, 1000).into_iter().filter(has_key).map(|it| it.info.version_id).collect()
}

#[test]
fn replaced_object_is_a_version() {
    let (_dir, store) = versioned();
    let first = put(&store, "key", b"first");
    let second = put(&store, "key", b"second");
    assert_ne!(first.version_id, VersionId::Null);
    assert_eq!(ids(&store, "key"), [second.version_id, first.version_id]);
    assert_eq!(get(&store, "key"), b"second");
    assert_eq!(version(&store, "key", first.version_id), b"first");
    assert_eq!(version(&store, "key", second.version_id), b"second");
    let found = store.get_version(BUCKET, "key", first.version_id).unwrap();
    assert_eq!(found.info, first, "the time and the ETag are retained");
    for (key, id) in
        [("key", VersionId::Null), ("key", VersionId::Id(7)), ("other", first.version_id)]
    {
        let missing = store.get_version(BUCKET, key, id);
        assert!(matches!(missing, Err(Error::NoSuchVersion { .. })), "{missing:?}");
    }
}

#[test]
fn deleted_object_is_restored_by_deletion_of_its_marker() {
    let (_dir, store) = versioned();
    let stored = put(&store, "key", b"bytes");
    let marker = delete(&store, "key", None);
    assert!(marker.existed && marker.is_delete_marker);
    assert!(matches!(try_get(&store, "key"), Err(Error::NoSuchKey { .. })));
    assert!(!delete(&store, "key", None).existed, "a second marker");
    assert_eq!(ids(&store, "key").len(), 3);
    let newest = store.delete_marker(BUCKET, "key").unwrap().unwrap().info.version_id;
    let undone = delete(&store, "key", Some(newest));
    let expected = Deleted { existed: true, version_id: Some(newest), is_delete_marker: true };
    assert_eq!(undone, expected);
    assert!(try_get(&store, "key").is_err(), "the first marker");
    delete(&store, "key", marker.version_id);
    assert_eq!(get(&store, "key"), b"bytes");
    assert_eq!(store.stat(BUCKET, "key").unwrap(), stored);
    assert_eq!(store.stats().versions, 0);
}

#[test]
fn deleted_version_makes_the_next_older_one_current() {
    let (_dir, store) = versioned();
    let [a, b, c] = [b"a", b"b", b"c"].map(|bytes| put(&store, "key", bytes));
    assert!(!delete(&store, "key", Some(b.version_id)).is_delete_marker);
    assert_eq!(get(&store, "key"), b"c");
    delete(&store, "key", Some(c.version_id));
    assert_eq!((get(&store, "key"), ids(&store, "key")), (b"a".to_vec(), vec![a.version_id]));
    assert_eq!(delete(&store, "key", Some(c.version_id)), Deleted::default());
    delete(&store, "key", Some(a.version_id));
    assert!(matches!(store.stat(BUCKET, "key"), Err(Error::NoSuchKey { .. })));
    let stats = store.stats();
    assert_eq!((stats.objects, stats.versions, stats.version_bytes), (0, 0, 0));
}

#[test]
fn object_of_a_bucket_without_versions_has_the_id_null() {
    let (_dir, store) = new_store();
    put(&store, "key", b"old");
    assert_eq!(put(&store, "key", b"null").version_id, VersionId::Null);
    assert_eq!(delete(&store, "key", Some(VersionId::Id(7))), Deleted::default());
    assert_eq!(version(&store, "key", VersionId::Null), b"null");
    store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    let next = put(&store, "key", b"next");
    assert_eq!(ids(&store, "key"), [next.version_id, VersionId::Null]);
    assert_eq!(version(&store, "key", VersionId::Null), b"null");
    delete(&store, "key", Some(next.version_id));
    assert_eq!(get(&store, "key"), b"null");
}

#[test]
fn suspended_bucket_replaces_only_the_version_null() {
    let (_dir, store) = versioned();
    let first = put(&store, "key", b"first");
    store.set_versioning(BUCKET, Versioning::Suspended).unwrap();
    assert_eq!(put(&store, "key", b"second").version_id, VersionId::Null);
    assert_eq!(put(&store, "key", b"third").version_id, VersionId::Null);
    assert_eq!(ids(&store, "key"), [VersionId::Null, first.version_id]);
    assert_eq!(version(&store, "key", VersionId::Null), b"third");
    let marker = delete(&store, "key", None);
    assert_eq!(marker.version_id, Some(VersionId::Null));
    assert_eq!(ids(&store, "key"), [VersionId::Null, first.version_id]);
    store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    let fourth = put(&store, "key", b"fourth");
    assert_eq!(ids(&store, "key"), [fourth.version_id, VersionId::Null, first.version_id]);
    store.set_versioning(BUCKET, Versioning::Suspended).unwrap();
    put(&store, "key", b"fifth");
    let all = [VersionId::Null, fourth.version_id, first.version_id];
    assert_eq!(ids(&store, "key"), all, "the marker was replaced");
    assert!(store.set_versioning(BUCKET, Versioning::Off).is_err());
}

#[test]
fn bucket_with_versions_is_not_empty() {
    let (dir, store) = versioned();
    let stored = put(&store, "key", b"bytes");
    let marker = delete(&store, "key", None);
    for id in [stored.version_id, marker.version_id.unwrap()] {
        let deleted = store.delete_bucket(BUCKET);
        assert!(matches!(deleted, Err(Error::BucketNotEmpty { .. })), "{deleted:?}");
        delete(&store, "key", Some(id));
    }
    store.delete_bucket(BUCKET).unwrap();
    store.create_bucket(BUCKET).unwrap();
    assert_eq!(store.versioning(BUCKET).unwrap(), Versioning::Off);
    assert_eq!(put(&store, "key", b"bytes").version_id, VersionId::Null);
    store.close().unwrap();
    let store = reopen(dir.path()).0;
    assert_eq!(store.versioning(BUCKET).unwrap(), Versioning::Off);
    assert_eq!(store.stats().buckets, 1);
}

#[test]
fn internal_bucket_is_not_accessible() {
    let (_dir, store) = versioned();
    put(&store, "key", b"first");
    put(&store, "key", b"second");
    let internal = "bucket:versions";
    let none = (Attributes::new(), Precondition::None);
    let key = "key\0fe6";
    let outcomes: Vec<Result<()>> = vec![
        store.list(internal, &ListRequest::default()).map(drop),
        store.put(internal, key, b"", &none.0, &none.1).map(drop),
        store.start_put(internal, key, b"", &none.0, &none.1).map(drop),
        store.get(internal, key).map(drop),
        store.get_cached(internal, key).map(drop),
        store.stat(internal, key).map(drop),
        store.delete(internal, key).map(drop),
        store.delete_object(internal, key, None).map(drop),
        store.list_versions(internal, &ListVersionsRequest::default()).map(drop),
        store.get_version(internal, key, VersionId::Null).map(drop),
        store.versioning(internal).map(drop),
        store.set_versioning(internal, Versioning::Suspended),
        store.bucket(internal).map(drop),
        store.delete_bucket(internal),
        store.lifecycle(internal).map(drop),
        store.set_lifecycle(internal, &Lifecycle::default()),
        store.list_uploads(internal, &ListUploadsRequest::default()).map(drop),
        store.start_upload(internal, key, &none.0).map(drop),
    ];
    for (number, outcome) in outcomes.into_iter().enumerate() {
        assert!(matches!(outcome, Err(Error::NoSuchBucket { .. })), "{number}: {outcome:?}");
    }
    assert!(store.create_bucket(internal).is_err());
    let names: Vec<String> = store.buckets().unwrap().into_iter().map(|it| it.name).collect();
    assert_eq!((names, store.stats().buckets), (vec![BUCKET.to_owned()], 1));
}

#[test]
fn expired_object_gets_a_delete_marker() {
    let (_dir, store) = versioned();
    let stored = put(&store, "key", b"bytes");
    let expire = Some(Expiry::At(UNIX_EPOCH));
    let rule = LifecycleRule { enabled: true, expire, ..LifecycleRule::default() };
    store.set_lifecycle(BUCKET, &Lifecycle { rules: vec![rule] }).unwrap();
    assert_eq!(store.expire_now(BUCKET).unwrap().expired_objects, 1);
    assert_eq!(store.expire_now(BUCKET).unwrap().expired_objects, 0);
    assert!(try_get(&store, "key").is_err());
    assert_eq!(version(&store, "key", stored.version_id), b"bytes");
    assert_eq!(ids(&store, "key").len(), 2);
}

#[test]
fn refused_put_retains_nothing() {
    let (_dir, store) = versioned();
    put(&store, "key", b"bytes");
    let before = store.stats();
    let refused = store.put(BUCKET, "key", b"", &Attributes::new(), &Precondition::Absent);
    assert!(matches!(refused, Err(Error::PreconditionFailed)));
    let after = store.stats();
    assert_eq!((after.versions, after.log_records), (0, before.log_records));
}

#[test]
fn versions_of_a_big_object_share_its_file() {
    let (dir, store) = versioned();
    let bytes = crate::random_bytes(seed(), 2 * BIG);
    let big = put(&store, "key", &bytes);
    let small = put(&store, "key", b"small");
    delete(&store, "key", None);
    assert_eq!(big_files(dir.path()).len(), 1);
    assert_eq!(version(&store, "key", big.version_id), bytes);
    let marker = store.delete_marker(BUCKET, "key").unwrap().unwrap();
    delete(&store, "key", Some(small.version_id));
    delete(&store, "key", Some(marker.info.version_id));
    assert_eq!(get(&store, "key"), bytes);
    assert_eq!(big_files(dir.path()).len(), 1);
    delete(&store, "key", Some(big.version_id));
    assert_eq!(big_files(dir.path()).len(), 0);
}

/// An object whose data was stored in a needle when big objects were larger.
#[test]
fn long_object_is_retained_in_a_file() {
    let (dir, store) = new_store();
    store.close().unwrap();
    let large = haul_file_store::Options { big_object_bytes: 1 << 20, ..crate::small() };
    let (store, _) = Store::open(dir.path(), large).unwrap();
    let bytes = crate::random_bytes(1, 3 * BIG);
    put(&store, "key", &bytes);
    store.close().unwrap();
    let store = reopen(dir.path()).0;
    store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    put(&store, "key", b"next");
    assert_eq!(version(&store, "key", VersionId::Null), bytes);
    assert_eq!(big_files(dir.path()).len(), 1);
    store.close().unwrap();
    let store = reopen(dir.path()).0;
    assert_eq!(version(&store, "key", VersionId::Null), bytes);
}

/// A simple implementation: folds all versions, and truncates the list.
fn plain(all: &[(String, VersionId)], request: &ListVersionsRequest<'_>) -> Vec<String> {
    let after = request.after.unwrap_or("");
    let is_version = |(key, id): &&(String, VersionId)| {
        Some(key.as_str()) == request.after && Some(*id) == request.after_version
    };
    let first = all.iter().position(|version| is_version(&version)).map_or(0, |at| at + 1);
    let is_behind = |(number, (key, _)): &(usize, &(String, VersionId))| {
        let same_key = request.after_version.is_some() && key == after;
        if same_key { *number >= first } else { key.as_str() > after }
    };
    let mut lines: Vec<String> = Vec::new();
    for (_, (key, id)) in all.iter().enumerate().filter(is_behind) {
        let Some(rest) = key.strip_prefix(request.prefix) else { continue };
        let at = request.delimiter.and_then(|delimiter| rest.find(delimiter));
        let line = match at {
            Some(at) => key[..=request.prefix.len() + at].to_owned(),
            None => format!("{key} {id}"),
        };
        if lines.last() != Some(&line) && (at.is_none() || line.as_str() > after) {
            lines.push(line);
        }
    }
    lines.truncate(request.limit);
    lines
}

#[test]
fn pages_of_versions_equal_those_of_a_plain_list() {
    let seed = seed();
    let (_context, mut random) =
        (haul_testing::PrintOnPanic(haul_testing::replay_command(seed)), Random(seed));
    let (_dir, store) = versioned();
    let keys = ["a", "a/1", "a/2", "a/b/3", "b", "b/", "c\0", "c\0d", "c\u{1}"];
    for _ in 0..60 {
        let key = keys[usize::try_from(random.below(9)).unwrap()];
        match random.below(3) {
            0 => drop(delete(&store, key, None)),
            _ => drop(put(&store, key, b"")),
        }
    }
    let all: Vec<(String, VersionId)> =
        list_all(&store, 1000).into_iter().map(|it| (it.info.key, it.info.version_id)).collect();
    assert_eq!(all.len(), 60);
    for _ in 0..400 {
        let (key, id) = &all[usize::try_from(random.below(60)).unwrap()];
        let (after, after_version) = match random.below(4) {
            0 => (None, None),
            1 => (Some(&key[..key.find('/').map_or(key.len(), |at| at + 1)]), None),
            2 => (Some(key.as_str()), None),
            _ => (Some(key.as_str()), Some(*id)),
        };
        let prefix = ["", "", "a", "a/", "c"][usize::try_from(random.below(5)).unwrap()];
        let delimiter = (random.below(2) == 0).then_some("/");
        let limit = usize::try_from(random.below(8)).unwrap();
        let request = ListVersionsRequest { prefix, delimiter, after, after_version, limit };
        let page = store.list_versions(BUCKET, &request).unwrap();
        let line = |entry: &VersionListEntry| match entry {
            VersionListEntry::Version(it) => format!("{} {}", it.info.key, it.info.version_id),
            VersionListEntry::Prefix(prefix) => prefix.clone(),
        };
        let found: Vec<String> = page.entries.iter().map(line).collect();
        assert_eq!(found, plain(&all, &request), "{request:?}");
        let more = plain(&all, &ListVersionsRequest { limit: 1000, ..request.clone() }).len();
        assert_eq!(page.more, limit > 0 && more > limit, "{request:?}");
    }
}

#[test]
fn listing_continues_after_the_versions_of_a_page_were_deleted() {
    for limit in 1..8 {
        let (_dir, store) = versioned();
        for key in ["a", "b", "c"] {
            put(&store, key, b"first");
            put(&store, key, b"second");
            delete(&store, key, None);
            put(&store, key, b"third");
        }
        let (mut marker, mut deleted) = (None, 0);
        loop {
            let (after, after_version): (Option<String>, _) = marker.take().unzip();
            let after = after.as_deref();
            let request = ListVersionsRequest { after, after_version, limit, ..Default::default() };
            let page = store.list_versions(BUCKET, &request).unwrap();
            let stored = list_all(&store, 1000);
            for entry in page.entries {
                let VersionListEntry::Version(version) = entry else {
                    panic!("{entry:?} without a delimiter");
                };
                assert!(stored.contains(&version), "{version:?} is not in {stored:?}");
                let info = version.info;
                delete(&store, &info.key, Some(info.version_id));
                deleted += 1;
                marker = Some((info.key, info.version_id));
            }
            if !page.more {
                break;
            }
        }
        assert_eq!((deleted, list_all(&store, 100).len()), (12, 0), "pages of {limit}");
    }
}

#[test]
fn version_is_restored_by_a_copy() {
    let (_dir, store) = versioned();
    let first = put(&store, "key", b"first");
    put(&store, "key", b"second");
    let object = store.get_version(BUCKET, "key", first.version_id).unwrap();
    let copy = store.copy_object(&object, BUCKET, "key", None, &Precondition::None).unwrap();
    assert_ne!(copy.version_id, first.version_id);
    assert_eq!((get(&store, "key"), ids(&store, "key").len()), (b"first".to_vec(), 3));
    let head = store.head_version(BUCKET, "key", first.version_id).unwrap();
    let copied = store.copy_object(&head, BUCKET, "copy", None, &Precondition::None);
    assert!(matches!(copied, Err(Error::Invalid { .. })), "only its head was read");
}

#[test]
fn conditions_apply_to_the_current_object() {
    let (_dir, store) = versioned();
    let stored = put(&store, "key", b"bytes");
    let none = Attributes::new();
    let matches = Precondition::Matches(stored.etag);
    assert!(store.put(BUCKET, "key", b"next", &none, &matches).is_ok());
    delete(&store, "key", None);
    assert!(store.put(BUCKET, "key", b"", &none, &Precondition::Present).is_err());
    assert!(store.put(BUCKET, "key", b"", &none, &Precondition::Absent).is_ok());
    assert!(try_put(&store, "", b"").is_err());
}
