//! Everything that is visible of a key through the interface of a store.

use std::collections::BTreeMap;

use haul_file_store::{
    Attributes, Error, ListUploadsRequest, ListVersionsRequest, Object, ObjectInfo, PartInfo,
    Result, Store, UploadInfo, UploadListEntry, VersionId, VersionInfo, VersionListEntry,
};

use crate::{BUCKET, content, list};

/// A readable object or version.
#[derive(Clone, PartialEq)]
pub(super) struct Readable {
    pub(super) info: ObjectInfo,
    pub(super) attributes: Attributes,
    pub(super) part_bytes: Vec<u64>,
    pub(super) bytes: Vec<u8>,
}

impl std::fmt::Debug for Readable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { info, attributes, part_bytes, .. } = self;
        f.debug_struct("Readable")
            .field("info", info)
            .field("attributes", attributes)
            .field("part_bytes", part_bytes)
            .finish_non_exhaustive()
    }
}

/// What a store has under a key.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Visible {
    pub(super) current: Option<Readable>,
    /// From newest to oldest; a delete marker has no content.
    pub(super) versions: Vec<(VersionInfo, Option<Readable>)>,
    pub(super) marker: Option<VersionInfo>,
    pub(super) uploads: Vec<(UploadInfo, Vec<PartInfo>)>,
}

fn readable(object: &Object) -> Readable {
    let (info, attributes) = (object.info.clone(), object.attributes.clone());
    let (part_bytes, bytes) = (object.part_bytes(), content(object).unwrap());
    Readable { info, attributes, part_bytes, bytes }
}

/// Lists all keys under which anything is stored, in pages.
pub(super) fn keys(store: &Store, page: usize) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    loop {
        let last = keys.last().cloned();
        let found = store.stored_keys(BUCKET, last.as_deref(), page).unwrap();
        assert!(found.len() <= page);
        let is_last = found.len() < page;
        keys.extend(found);
        if is_last {
            assert!(keys.is_sorted_by(|one, other| one < other), "{keys:?}");
            return keys;
        }
    }
}

/// Reads all that is visible in the bucket, by key, and checks the listings against each other.
pub(super) fn visible(store: &Store) -> BTreeMap<String, Visible> {
    let mut seen: BTreeMap<String, Visible> = BTreeMap::new();
    for info in list(store, BUCKET) {
        let object = readable(&store.get(BUCKET, &info.key).unwrap());
        assert_eq!(object.info, info);
        seen.entry(info.key).or_default().current = Some(object);
    }
    let request = ListVersionsRequest { limit: usize::MAX, ..ListVersionsRequest::default() };
    for entry in store.list_versions(BUCKET, &request).unwrap().entries {
        let VersionListEntry::Version(version) = entry else { panic!("{entry:?}") };
        let (key, id) = (version.info.key.clone(), version.info.version_id);
        let read = match store.get_version(BUCKET, &key, id) {
            Err(Error::IsDeleteMarker { .. }) => None,
            read => Some(readable(&read.unwrap())),
        };
        assert_eq!(read.is_none(), version.is_delete_marker);
        seen.entry(key).or_default().versions.push((version, read));
    }
    let request = ListUploadsRequest { limit: usize::MAX, ..ListUploadsRequest::default() };
    for entry in store.list_uploads(BUCKET, &request).unwrap().entries {
        let UploadListEntry::Upload { key, id } = entry else { panic!("{entry:?}") };
        let upload = store.upload(BUCKET, &key, &id).unwrap();
        let parts = store.parts(BUCKET, &key, &id).unwrap();
        seen.entry(key).or_default().uploads.push((upload, parts));
    }
    for (key, visible) in &mut seen {
        visible.marker = store.delete_marker(BUCKET, key).unwrap();
    }
    for page in [1, 3, 1000] {
        let expected: Vec<String> = seen.keys().cloned().collect();
        assert_eq!(keys(store, page), expected, "in pages of {page}");
    }
    seen
}

/// Checks that two stores together have exactly the state `expected` of a key, as a pool finds it,
/// which looks in the second store first.
pub(super) fn check_union([from, to]: [&Store; 2], key: &str, expected: &Visible) {
    let current = found(to.get(BUCKET, key)).or_else(|| found(from.get(BUCKET, key)));
    assert_eq!(current, expected.current, "the current object");
    let versions = |store: &Store| -> Vec<VersionId> {
        let seen = visible(store).remove(key).unwrap_or_default().versions;
        seen.into_iter().map(|(version, _)| version.info.version_id).collect()
    };
    let ids: Vec<VersionId> =
        expected.versions.iter().map(|(version, _)| version.info.version_id).collect();
    let [here, there] = [from, to].map(versions);
    assert!(here.iter().chain(&there).all(|id| ids.contains(id)), "a version came back");
    for (version, read) in &expected.versions {
        let id = version.info.version_id;
        let holders =
            [(from, &here), (to, &there)].map(|(store, ids)| ids.contains(&id).then_some(store));
        assert!(holders.iter().any(Option::is_some), "version {id} is lost");
        for store in holders.into_iter().flatten() {
            let found = match store.get_version(BUCKET, key, id) {
                Err(Error::IsDeleteMarker { .. }) => None,
                read => Some(readable(&read.unwrap())),
            };
            assert_eq!(found, *read, "version {id}");
        }
    }
    for (upload, parts) in &expected.uploads {
        let read = |store: &Store| -> Option<Vec<PartInfo>> {
            match store.upload(BUCKET, key, &upload.id) {
                Err(Error::NoSuchUpload { .. }) => None,
                found => {
                    assert_eq!(found.unwrap(), *upload);
                    Some(store.parts(BUCKET, key, &upload.id).unwrap())
                }
            }
        };
        let [here, there] = [from, to].map(read);
        let has_all = |found: &Option<Vec<PartInfo>>| found.as_ref() == Some(parts);
        assert!(has_all(&here) || has_all(&there), "parts of {} are lost", upload.id);
    }
}

fn found(object: Result<Object>) -> Option<Readable> {
    match object {
        Err(Error::NoSuchKey { .. }) => None,
        object => Some(readable(&object.unwrap())),
    }
}
