//! A simple model of buckets with versions, and random acts on them.

use std::collections::BTreeMap;
use std::sync::Arc;

use haul_file_store::{
    Attributes, Error, ListVersionsRequest, NewObject, Precondition, Result, Store, VersionId,
    VersionInfo, VersionListEntry, Versioning,
};
use haul_testing::Random;

use crate::start_put::block_on;
use crate::{BIG, content, list, put_part};

/// The bytes and attributes of an object; `None` for a delete marker.
type Content = Option<(Arc<[u8]>, Attributes)>;

/// A version. The ID is `None` if the act that created it was not acknowledged.
#[derive(Debug, Clone)]
pub(super) struct ModelVersion {
    id: Option<VersionId>,
    is_null: bool,
    content: Content,
}

/// The versions of the keys, from newest to oldest.
type Keys = BTreeMap<String, Vec<ModelVersion>>;

/// The expected content of the bucket [`crate::BUCKET`].
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    versioning: Versioning,
    keys: Keys,
}

/// An act on the bucket.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Set(Versioning),
    Put {
        key: String,
        bytes: Arc<[u8]>,
        attributes: Attributes,
        with: PutCall,
    },
    Copy {
        from: String,
        to: String,
    },
    Delete {
        key: String,
    },
    DeleteVersion {
        key: String,
        id: VersionId,
    },
    /// Changes the attributes of a version.
    Change {
        key: String,
        id: VersionId,
        attributes: Attributes,
    },
    Compact,
}

/// The call that stores an object.
#[derive(Debug, Clone, Copy)]
pub(super) enum PutCall {
    Single,
    Many,
    Start,
    Upload,
}

const BUCKET: &str = crate::BUCKET;

fn key(random: &mut Random) -> String {
    // Keys of which one is the beginning of another, and which need an escape.
    ["a", "a\0", "a\0b", "a\u{1}", "dir/1", "dir/2", "z"][below(random, 7)].to_owned()
}

fn below(random: &mut Random, bound: u64) -> usize {
    usize::try_from(random.below(bound)).unwrap()
}

impl Model {
    /// Returns a random act.
    pub(super) fn plan(&self, random: &mut Random, is_long: bool) -> Act {
        let chosen = key(random);
        match random.below(40) {
            0 | 1 => Act::Set(Versioning::Enabled),
            2 => Act::Set(Versioning::Suspended),
            3..9 => Act::Delete { key: chosen },
            9..18 => {
                let versions = self.keys.get(&chosen).map_or(&[][..], Vec::as_slice);
                match versions.get(below(random, versions.len().max(1) as u64)) {
                    Some(version) => Act::DeleteVersion { key: chosen, id: version.id.unwrap() },
                    None => Act::DeleteVersion { key: chosen, id: VersionId::Id(7) },
                }
            }
            39 => match self.keys.get(&chosen) {
                Some(versions) => {
                    let id = versions[below(random, versions.len() as u64)].id.unwrap();
                    let tag = random.below(100).to_string();
                    Act::Change {
                        key: chosen,
                        id,
                        attributes: Attributes::from_iter([("tag", tag)]),
                    }
                }
                None => Act::Compact,
            },
            18..21 => match self.current(&chosen) {
                Some(_) => Act::Copy { from: chosen, to: key(random) },
                None => Act::Compact,
            },
            _ => {
                let big = BIG as u64;
                let length = match (random.below(8), is_long) {
                    (0, _) => 0,
                    (1, _) => big + random.below(big),
                    (_, false) => random.below(3000),
                    (_, true) => big / 2 + random.below(big / 2),
                };
                let bytes = random.bytes(usize::try_from(length).unwrap()).into();
                let name = random.below(100).to_string();
                let attributes = Attributes::from_iter([("name", name)]);
                let with = [PutCall::Single, PutCall::Many, PutCall::Start, PutCall::Upload]
                    [below(random, 4)];
                Act::Put { key: chosen, bytes, attributes, with }
            }
        }
    }

    fn current(&self, key: &str) -> Option<&(Arc<[u8]>, Attributes)> {
        self.keys.get(key)?.first()?.content.as_ref()
    }

    /// Executes an act. Returns the ID of the version that it created.
    pub(super) fn execute(&self, act: &Act, store: &Store) -> Result<Option<VersionId>> {
        let none = Precondition::None;
        match act {
            Act::Set(versioning) => store.set_versioning(BUCKET, *versioning)?,
            Act::Put { key, bytes, attributes, with: PutCall::Single } => {
                return Ok(Some(store.put(BUCKET, key, bytes, attributes, &none)?.version_id));
            }
            Act::Put { key, bytes, attributes, with: PutCall::Many } => {
                let object = NewObject { key, bytes, attributes, precondition: &none };
                let stored = store.put_many(BUCKET, &[object]).pop().unwrap()?;
                return Ok(Some(stored.version_id));
            }
            Act::Put { key, bytes, attributes, with: PutCall::Start } => {
                let stored = match store.start_put(BUCKET, key, bytes, attributes, &none)? {
                    Some(pending) => block_on(pending)?,
                    None => store.put(BUCKET, key, bytes, attributes, &none)?,
                };
                return Ok(Some(stored.version_id));
            }
            Act::Put { key, bytes, attributes, with: PutCall::Upload } => {
                let upload = store.start_upload(BUCKET, key, attributes)?;
                let part = put_part(store, key, &upload, 1, bytes);
                let more = Attributes::new();
                let stored = store.complete_upload(BUCKET, key, &upload, &[part], &more, &none)?;
                return Ok(Some(stored.version_id));
            }
            Act::Copy { from, to } => {
                let copied = store.copy((BUCKET, from), (BUCKET, to), None, &none)?;
                return Ok(Some(copied.version_id));
            }
            Act::Delete { key } => {
                let deleted = store.delete_object(BUCKET, key, None)?;
                assert_eq!(deleted.existed, self.current(key).is_some());
                assert_eq!(deleted.is_delete_marker, self.versioning != Versioning::Off);
                return Ok(deleted.version_id);
            }
            Act::DeleteVersion { key, id } => {
                let deleted = store.delete_object(BUCKET, key, Some(*id))?;
                let versions = self.keys.get(key).map_or(&[][..], Vec::as_slice);
                let found = versions.iter().find(|version| version.id == Some(*id));
                assert_eq!(deleted.existed, found.is_some(), "{act:?}");
                let is_marker = found.is_some_and(|version| version.content.is_none());
                assert_eq!(deleted.is_delete_marker, is_marker, "{act:?}");
            }
            Act::Change { key, id, attributes } => {
                let change = |present: &mut Attributes| {
                    *present = attributes.clone();
                    Ok(())
                };
                match store.update_attributes(BUCKET, key, Some(*id), &change) {
                    Err(Error::IsDeleteMarker { .. }) => {}
                    changed => assert_eq!(changed?.version_id, *id),
                }
            }
            Act::Compact => drop(store.compact()?),
        }
        Ok(None)
    }

    /// Applies an act, which created a version with this ID.
    pub(super) fn apply(&mut self, act: &Act, id: Option<VersionId>) {
        match act.clone() {
            Act::Set(versioning) => self.versioning = versioning,
            Act::Put { key, bytes, attributes, .. } => self.add(key, id, Some((bytes, attributes))),
            Act::Copy { from, to } => {
                let copied = self.current(&from).cloned();
                self.add(to, id, copied);
            }
            Act::Delete { key } if self.versioning == Versioning::Off => {
                self.keys.remove(&key);
            }
            Act::Delete { key } => self.add(key, id, None),
            Act::DeleteVersion { key, id } => {
                if let Some(versions) = self.keys.get_mut(&key) {
                    versions.retain(|version| version.id != Some(id));
                }
                self.keys.retain(|_, versions| !versions.is_empty());
            }
            Act::Change { key, id, attributes } => {
                let versions = self.keys.get_mut(&key).unwrap();
                let version = versions.iter_mut().find(|version| version.id == Some(id)).unwrap();
                if let Some(content) = &mut version.content {
                    content.1 = attributes;
                }
            }
            Act::Compact => {}
        }
    }

    fn add(&mut self, key: String, id: Option<VersionId>, content: Content) {
        let is_null = self.versioning != Versioning::Enabled;
        assert!(id.is_none_or(|id| (id == VersionId::Null) == is_null), "{id:?}");
        let versions = self.keys.entry(key).or_default();
        versions.retain(|version| !(is_null && version.is_null));
        versions.insert(0, ModelVersion { id, is_null, content });
    }

    /// Checks that the store has the content of the model: all versions, their order, and the
    /// current objects.
    pub(super) fn check(&self, store: &Store, page: usize) {
        assert!(self.equals(&seen(store, page)), "expected {:?}", self.summary());
        assert_eq!(store.versioning(BUCKET).unwrap(), self.versioning);
        check_currents(store);
    }

    fn summary(&self) -> Vec<String> {
        let line = |(key, version): (&String, &ModelVersion)| {
            let bytes = version.content.as_ref().map(|content| content.0.len());
            format!("{key:?} {:?} {bytes:?}", version.id)
        };
        let versions = |(key, all)| -> Vec<_> { std::iter::repeat(key).zip(all).collect() };
        self.keys.iter().flat_map(versions).map(line).collect()
    }

    /// Returns the model of the content and state that a crash during an act left; `None` if the
    /// act cannot leave them.
    pub(super) fn after_crash(&self, act: Option<&Act>, store: &Store) -> Option<Self> {
        let (seen, versioning) = (seen(store, 1000), store.versioning(BUCKET).unwrap());
        check_currents(store);
        let done = act.map(|act| {
            let mut after = self.clone();
            after.apply(act, None);
            after
        });
        let is_state = |model: &Self| model.equals(&seen) && model.versioning == versioning;
        let mut found = [Some(self.clone()), done].into_iter().flatten().find(is_state)?;
        for (key, versions) in &mut found.keys {
            for (version, (id, _)) in versions.iter_mut().zip(&seen[key]) {
                version.id = Some(*id);
            }
        }
        Some(found)
    }

    fn equals(&self, seen: &Seen) -> bool {
        let is_same = |(model, seen): (&ModelVersion, &(VersionId, Content))| {
            let is_id = model.id.is_none_or(|id| id == seen.0);
            is_id && model.is_null == (seen.0 == VersionId::Null) && model.content == seen.1
        };
        self.keys.len() == seen.len()
            && self.keys.iter().all(|(key, versions)| {
                let found = seen.get(key).map_or(&[][..], Vec::as_slice);
                versions.len() == found.len() && versions.iter().zip(found).all(is_same)
            })
    }
}

/// The versions that a store has.
type Seen = BTreeMap<String, Vec<(VersionId, Content)>>;

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
fn seen(store: &Store, page: usize) -> Seen {
    let mut seen = Seen::new();
    for version in list_all(store, page) {
        let (info, id) = (version.info.clone(), version.info.version_id);
        let read = store.get_version(BUCKET, &info.key, id);
        let head = store.head_version(BUCKET, &info.key, id);
        let found = match version.is_delete_marker {
            true => {
                assert!(matches!(read, Err(Error::IsDeleteMarker { .. })), "{read:?}");
                assert!(matches!(head, Err(Error::IsDeleteMarker { .. })), "{head:?}");
                None
            }
            false => {
                let (object, head) = (read.unwrap(), head.unwrap());
                assert_eq!((&object.info, &head.info), (&info, &info));
                assert_eq!(object.attributes, head.attributes);
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
fn check_currents(store: &Store) {
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
