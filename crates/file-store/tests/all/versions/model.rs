//! A simple model of buckets with versions, and random acts on them.

use std::collections::BTreeMap;
use std::sync::Arc;

use haul_file_store::{
    Attributes, Deleted, Deletion, Error, NewObject, Precondition, Result, Store, VersionId,
    Versioning,
};
use haul_testing::Random;

use super::contents::{Seen, check_currents, seen};
use crate::start_put::block_on;
use crate::{BIG, put_part};

/// The bytes and attributes of an object; `None` for a delete marker.
pub(super) type Content = Option<(Arc<[u8]>, Attributes)>;

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
    /// Deletes versions of keys, or current objects if there is no ID.
    Delete(Vec<(String, Option<VersionId>)>),
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
            3..9 => Act::Delete(vec![(chosen, None)]),
            9..15 => Act::Delete(vec![self.plan_deletion(chosen, random)]),
            15..18 => {
                let deletions = (0..2 + random.below(8)).map(|_| {
                    let chosen = key(random);
                    match random.below(4) {
                        0 => (chosen, None),
                        _ => self.plan_deletion(chosen, random),
                    }
                });
                Act::Delete(deletions.collect())
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

    /// Returns the deletion of a random version of a key.
    fn plan_deletion(&self, key: String, random: &mut Random) -> (String, Option<VersionId>) {
        let versions = self.versions(&key);
        let version = versions.get(below(random, versions.len().max(1) as u64));
        (key, Some(version.map_or(VersionId::Id(7), |version| version.id.unwrap())))
    }

    fn versions(&self, key: &str) -> &[ModelVersion] {
        self.keys.get(key).map_or(&[], Vec::as_slice)
    }

    fn current(&self, key: &str) -> Option<&(Arc<[u8]>, Attributes)> {
        self.keys.get(key)?.first()?.content.as_ref()
    }

    /// Executes an act. Returns the IDs of the versions that it created, in order.
    pub(super) fn execute(&self, act: &Act, store: &Store) -> Result<Vec<VersionId>> {
        let none = Precondition::None;
        match act {
            Act::Set(versioning) => store.set_versioning(BUCKET, *versioning)?,
            Act::Put { key, bytes, attributes, with: PutCall::Single } => {
                return Ok(vec![store.put(BUCKET, key, bytes, attributes, &none)?.version_id]);
            }
            Act::Put { key, bytes, attributes, with: PutCall::Many } => {
                let object = NewObject { key, bytes, attributes, precondition: &none };
                let stored = store.put_many(BUCKET, &[object]).pop().unwrap()?;
                return Ok(vec![stored.version_id]);
            }
            Act::Put { key, bytes, attributes, with: PutCall::Start } => {
                let stored = match store.start_put(BUCKET, key, bytes, attributes, &none)? {
                    Some(pending) => block_on(pending)?.info,
                    None => store.put(BUCKET, key, bytes, attributes, &none)?,
                };
                return Ok(vec![stored.version_id]);
            }
            Act::Put { key, bytes, attributes, with: PutCall::Upload } => {
                let upload = store.start_upload(BUCKET, key, attributes)?;
                let part = put_part(store, key, &upload, 1, bytes);
                let more = Attributes::new();
                let stored = store.complete_upload(BUCKET, key, &upload, &[part], &more, &none)?;
                return Ok(vec![stored.version_id]);
            }
            Act::Copy { from, to } => {
                let copied = store.copy((BUCKET, from), (BUCKET, to), None, &none)?;
                return Ok(vec![copied.version_id]);
            }
            Act::Delete(deletions) => return self.execute_deletions(deletions, store),
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
        Ok(Vec::new())
    }

    fn execute_deletions(
        &self,
        deletions: &[(String, Option<VersionId>)],
        store: &Store,
    ) -> Result<Vec<VersionId>> {
        let deletion = |(key, version): &'_ (String, Option<VersionId>)| (key.clone(), *version);
        let (mut model, mut created) = (self.clone(), Vec::new());
        let requested: Vec<_> = deletions
            .iter()
            .map(|(key, version)| Deletion { version: *version, ..Deletion::of(key) })
            .collect();
        for (requested, deleted) in deletions.iter().zip(store.delete_objects(BUCKET, &requested)) {
            let deleted = deleted?;
            assert!(model.expects(requested, &deleted), "{requested:?}: {deleted:?}");
            let id = deleted.version_id.filter(|_| requested.1.is_none());
            let id = id.as_slice();
            model.apply(&Act::Delete(vec![deletion(requested)]), id);
            created.extend(id);
        }
        Ok(created)
    }

    /// Returns `true` if this is the outcome of a deletion.
    fn expects(&self, (key, version): &(String, Option<VersionId>), deleted: &Deleted) -> bool {
        let found = self.versions(key).iter().find(|found| found.id == *version);
        let (existed, is_delete_marker) = match version {
            None => (self.current(key).is_some(), self.versioning != Versioning::Off),
            Some(_) => (found.is_some(), found.is_some_and(|found| found.content.is_none())),
        };
        (deleted.existed, deleted.is_delete_marker) == (existed, is_delete_marker)
    }

    /// Applies an act, which created versions with these IDs. Those of an act that was not
    /// acknowledged are not known.
    pub(super) fn apply(&mut self, act: &Act, ids: &[VersionId]) {
        let mut ids = ids.iter().copied();
        let id = ids.next();
        match act.clone() {
            Act::Set(versioning) => self.versioning = versioning,
            Act::Put { key, bytes, attributes, .. } => self.add(key, id, Some((bytes, attributes))),
            Act::Copy { from, to } => {
                let copied = self.current(&from).cloned();
                self.add(to, id, copied);
            }
            Act::Delete(deletions) => {
                let mut ids = id.into_iter().chain(ids);
                deletions.into_iter().for_each(|deletion| self.delete(deletion, &mut ids));
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

    fn delete(
        &mut self,
        (key, version): (String, Option<VersionId>),
        created: &mut impl Iterator<Item = VersionId>,
    ) {
        match version {
            None if self.versioning == Versioning::Off => drop(self.keys.remove(&key)),
            None => self.add(key, created.next(), None),
            Some(_) => {
                let versions = self.keys.get_mut(&key).into_iter();
                versions.for_each(|all| all.retain(|found| found.id != version));
                self.keys.retain(|_, versions| !versions.is_empty());
            }
        }
    }

    fn add(&mut self, key: String, id: Option<VersionId>, content: Content) {
        let is_null = self.versioning != Versioning::Enabled;
        // A later deletion of the same act may name this ID.
        let id = if is_null { Some(VersionId::Null) } else { id };
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
        let done = act.map(|act| match act {
            Act::Delete(deletions) => self.after_some_of(deletions, &seen),
            act => {
                let mut after = self.clone();
                after.apply(act, &[]);
                after
            }
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

    /// Returns the model after the deletions of an interrupted act that the content has. Those of a
    /// key are executed in order.
    fn after_some_of(&self, deletions: &[(String, Option<VersionId>)], seen: &Seen) -> Self {
        let mut after = self.clone();
        for deletion in deletions {
            let versions = |seen: &Seen| seen.get(&deletion.0).cloned().unwrap_or_default();
            if !are_versions(after.versions(&deletion.0), &versions(seen)) {
                after.delete(deletion.clone(), &mut std::iter::empty());
            }
        }
        after
    }

    fn equals(&self, seen: &Seen) -> bool {
        self.keys.len() == seen.len()
            && self.keys.iter().all(|(key, versions)| {
                seen.get(key).is_some_and(|found| are_versions(versions, found))
            })
    }
}

/// Returns `true` if the versions of a key in a store are those of the model.
fn are_versions(versions: &[ModelVersion], seen: &[(VersionId, Content)]) -> bool {
    let is_same = |(model, seen): (&ModelVersion, &(VersionId, Content))| {
        let is_id = model.id.is_none_or(|id| id == seen.0);
        is_id && model.is_null == (seen.0 == VersionId::Null) && model.content == seen.1
    };
    versions.len() == seen.len() && versions.iter().zip(seen).all(is_same)
}
