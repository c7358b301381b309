//! The versions that a store has.

use std::collections::BTreeMap;

use haul_file_store::{
    Error, ListVersionsRequest, Store, VersionId, VersionInfo, VersionListEntry,
};

use super::model::Content;
use crate::{BUCKET, content, list};

/// The versions of each key, from newest to oldest.
pub(super) type Seen = BTreeMap<String, Vec<(VersionId, Content)>>;

/// Returns all versions of the bucket, listed in pages.
pub(crate) fn list_all(store: &Store, limit: usize) -> Vec<VersionInfo> {
    let mut found: Vec<VersionInfo> = Vec::new();
    loop {
        let last = found.last().map(|last| (last.info.key.clone(), last.info.version_id));
        let request = ListVersionsRequest {
            after: last.as_ref().map(|(key, _)| key.as_str()),
            after_version: last.as_ref().map(|(_, id)| *id),
            limit,
            ..ListVersionsRequest::default()
        };
        let page = store.list_versions(BUCKET, &request).unwrap();
        assert!(page.entries.len() <= limit && (!page.more || page.entries.len() == limit));
        found.extend(page.entries.into_iter().map(|entry| match entry {
            VersionListEntry::Version(version) => version,
            VersionListEntry::Prefix(prefix) => panic!("{prefix:?} without a delimiter"),
        }));
        if !page.more {
            return found;
        }
    }
}

/// Reads every version of the bucket by its ID.
pub(super) fn seen(store: &Store, page: usize) -> Seen {
    let mut seen = Seen::new();
    for version in list_all(store, page) {
        let (info, id) = (version.info.clone(), version.info.version_id);
        let read = store.get_version(BUCKET, &info.key, id);
        let head = store.head_version(BUCKET, &info.key, id);
        let cached = store.head_version_cached(BUCKET, &info.key, id).unwrap();
        let found = match version.is_delete_marker {
            true => {
                assert!(cached.is_none(), "{cached:?}");
                assert!(matches!(read, Err(Error::IsDeleteMarker { .. })), "{read:?}");
                assert!(matches!(head, Err(Error::IsDeleteMarker { .. })), "{head:?}");
                None
            }
            false => {
                let (object, head) = (read.unwrap(), head.unwrap());
                assert_eq!((&object.info, &head.info), (&info, &info));
                assert_eq!(object.attributes, head.attributes);
                assert!(
                    cached.is_none_or(|it| it.info == info && it.attributes == head.attributes)
                );
                Some((content(&object).unwrap().into(), object.attributes))
            }
        };
        let versions = seen.entry(info.key).or_default();
        assert_eq!(version.is_latest, versions.is_empty());
        versions.push((id, found));
    }
    seen
}

/// Checks that the current object of each key is its newest version.
pub(super) fn check_currents(store: &Store) {
    let versions = list_all(store, 1000);
    let newest: Vec<&VersionInfo> = versions.iter().filter(|it| it.is_latest).collect();
    let objects = newest.iter().filter(|version| !version.is_delete_marker);
    let expected: Vec<_> = objects.map(|version| version.info.clone()).collect();
    let listed = list(store, BUCKET);
    assert_eq!(listed, expected);
    for version in newest {
        let key = &version.info.key;
        let current = store.get(BUCKET, key);
        if version.is_delete_marker {
            assert!(matches!(current, Err(Error::NoSuchKey { .. })), "{current:?}");
            assert_eq!(store.delete_marker(BUCKET, key).unwrap().as_ref(), Some(version));
        } else {
            assert_eq!(current.unwrap().info, version.info);
            assert_eq!(store.stat(BUCKET, key).unwrap(), version.info);
            assert_eq!(store.delete_marker(BUCKET, key).unwrap(), None);
        }
    }
    let bucket = store.bucket(BUCKET).unwrap();
    assert_eq!(bucket.objects, listed.len() as u64);
    assert_eq!(bucket.bytes, listed.iter().map(|info| info.bytes).sum::<u64>());
    let stats = store.stats();
    assert!(stats.versions >= (versions.len() - listed.len()) as u64);
}
