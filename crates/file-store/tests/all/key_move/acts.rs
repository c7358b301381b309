//! Random acts on keys of one store of a pair.

use std::time::{Duration, UNIX_EPOCH};

use haul_file_store::{
    Attributes, Deletion, Error, Etag, ObjectLock, Precondition, Result, Retention, RetentionMode,
    Store, VersionId, Versioning,
};
use haul_testing::Random;

use super::visible::{Visible, visible};
use super::{Kind, Pair};
use crate::{BIG, BUCKET, put_part};

/// The time at which retentions end: never, for a test.
const FAR_MS: u64 = 4_000_000_000_000;

const UPLOADS_MAX: usize = 3;

fn attributes(random: &mut Random, kind: Kind) -> Attributes {
    let mut attributes = Attributes::new();
    for number in 0..random.below(3) {
        attributes.set(format!("name-{number}"), format!("value {}", random.below(100)));
    }
    if kind == Kind::Locked && random.below(3) == 0 {
        let lock = ObjectLock {
            retention: (random.below(2) == 0).then(|| retention(random)),
            legal_hold: Some(random.below(2) == 0),
        };
        lock.set_in(&mut attributes);
    }
    attributes
}

fn retention(random: &mut Random) -> Retention {
    let mode = *random.pick(&[RetentionMode::Governance, RetentionMode::Compliance]);
    let until = UNIX_EPOCH + Duration::from_millis(FAR_MS + random.below(1000));
    Retention { mode, until }
}

fn bytes(random: &mut Random, is_big: bool) -> Vec<u8> {
    let length = if is_big { BIG + random.index(BIG) } else { random.index(2000) };
    random.bytes(length)
}

/// Executes a random act on a key of the store with number `on`. Rejections are no failures.
pub(super) fn act(random: &mut Random, pair: &Pair, on: usize, kind: Kind, key: &str) {
    let store = &pair.stores[on];
    let seen = || visible(store).remove(key).unwrap_or_default();
    let outcome = match random.below(20) {
        0..=4 => put(random, store, kind, key, false),
        5 => put(random, store, kind, key, true),
        6 => multipart(random, store, key),
        7 => start(random, store, key, seen().uploads.len()),
        8..=10 => store.delete(BUCKET, key).map(drop),
        11 => delete_version(random, store, key, &seen()),
        // The copy shares the files of a big object.
        12 => store.copy((BUCKET, key), (BUCKET, key), None, &Precondition::None).map(drop),
        13 | 14 => change(random, store, kind, key, &seen()),
        15 if kind == Kind::Versions => {
            let states = [Versioning::Enabled, Versioning::Enabled, Versioning::Suspended];
            pair.set_versioning(*random.pick(&states));
            Ok(())
        }
        15 | 16 => put(random, store, kind, key, false),
        17 | 18 => add_part(random, store, key, &seen()),
        _ => end_upload(random, store, key, &seen()),
    };
    match outcome {
        Ok(()) | Err(Error::NoSuchKey { .. } | Error::Locked { .. }) => {}
        Err(other) => panic!("{other:?}"),
    }
}

fn put(random: &mut Random, store: &Store, kind: Kind, key: &str, is_big: bool) -> Result<()> {
    let (bytes, attributes) = (bytes(random, is_big), attributes(random, kind));
    store.put(BUCKET, key, &bytes, &attributes, &Precondition::None).map(drop)
}

fn multipart(random: &mut Random, store: &Store, key: &str) -> Result<()> {
    let upload = store.start_upload(BUCKET, key, &attributes(random, Kind::Plain))?;
    let parts: Vec<(u16, Etag)> = (1..=3)
        .map(|number| put_part(store, key, &upload, 2 * number, &bytes(random, number == 1)))
        .collect();
    let extra = Attributes::from_iter([("extra", "1")]);
    store.complete_upload(BUCKET, key, &upload, &parts, &extra, &Precondition::None).map(drop)
}

fn start(random: &mut Random, store: &Store, key: &str, uploads: usize) -> Result<()> {
    if uploads == UPLOADS_MAX {
        return Ok(());
    }
    let upload = store.start_upload(BUCKET, key, &attributes(random, Kind::Plain))?;
    for number in 1..=u16::try_from(random.below(3)).unwrap() {
        put_part(store, key, &upload, number, &bytes(random, false));
    }
    Ok(())
}

fn add_part(random: &mut Random, store: &Store, key: &str, seen: &Visible) -> Result<()> {
    if let Some((upload, _)) = seen.uploads.first() {
        let (is_big, number) = (random.below(4) == 0, u16::try_from(1 + random.below(3)).unwrap());
        put_part(store, key, &upload.id, number, &bytes(random, is_big));
    }
    Ok(())
}

fn end_upload(random: &mut Random, store: &Store, key: &str, seen: &Visible) -> Result<()> {
    let Some((upload, parts)) = seen.uploads.first() else { return Ok(()) };
    if parts.is_empty() || random.below(2) == 0 {
        return store.abort_upload(BUCKET, key, &upload.id);
    }
    let parts: Vec<_> = parts.iter().map(|part| (part.number, part.etag)).collect();
    let none = (&Attributes::new(), &Precondition::None);
    store.complete_upload(BUCKET, key, &upload.id, &parts, none.0, none.1).map(drop)
}

fn some_version(random: &mut Random, seen: &Visible) -> Option<VersionId> {
    let objects = seen.versions.iter().filter(|(_, read)| read.is_some());
    let ids: Vec<_> = objects.map(|(version, _)| version.info.version_id).collect();
    (!ids.is_empty()).then(|| *random.pick(&ids))
}

fn delete_version(random: &mut Random, store: &Store, key: &str, seen: &Visible) -> Result<()> {
    let ids: Vec<_> = seen.versions.iter().map(|(version, _)| version.info.version_id).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let version = Some(*random.pick(&ids));
    let deletion = Deletion { version, bypass_governance: true, ..Deletion::of(key) };
    store.delete_objects(BUCKET, &[deletion]).pop().unwrap().map(drop)
}

fn change(random: &mut Random, store: &Store, kind: Kind, key: &str, seen: &Visible) -> Result<()> {
    let Some(id) = some_version(random, seen) else { return Ok(()) };
    let tag = random.below(1000).to_string();
    if kind == Kind::Locked && random.below(2) == 0 {
        return match random.below(2) {
            0 => store.set_legal_hold(BUCKET, key, Some(id), random.below(2) == 0).map(drop),
            _ => {
                let retention = Some(retention(random));
                store.set_retention(BUCKET, key, Some(id), retention, true).map(drop)
            }
        };
    }
    let set = |attributes: &mut Attributes| {
        attributes.set("tag", tag.as_str());
        Ok(())
    };
    store.update_attributes(BUCKET, key, Some(id), &set).map(drop)
}
