//! Stores what the other store lacks.

use std::sync::Arc;

use haul_append_log::{Position, SpacePriority};

use crate::error::Result;
use crate::format::{FilePart, Head, Kind};
use crate::index::entry::{Change, Entry, Replaced};
use crate::index::quotas::Reserved;
use crate::index::version_rows::VersionRow;
use crate::inner::Inner;
use crate::key_move::files::CopiedFiles;
use crate::key_move::locks::{
    check_same_bucket, lock_source, peek_state, try_enter, wait_for_gate,
};
use crate::key_move::plan::{LastStep, MissingUpload, Newest, Plan, common, plan};
use crate::key_move::state::{HeldVersion, KeyName, NeedleName, read_state};
use crate::needles::apply::{AppendedRecord, Pending};
use crate::needles::object::Files;
use crate::needles::stored::{StoredObject, append_stored, read_stored_at};
use crate::object::Attributes;
use crate::versions::retain::{tombstone, version_tombstone};

/// The limits on what is copied while the key is locked and the gate of `to` is held: checkpoints, and
/// the writers behind them, wait meanwhile.
const BATCH_NEEDLES: usize = 1024;
const BATCH_DATA_BYTES: u64 = 8 << 20;

/// The limit on the bytes of files that are copied before a needle references them. A move that is
/// interrupted copies them again.
const BATCH_FILE_BYTES: u64 = 4 << 30;

/// The outcome of [`copy_batch`].
#[derive(Debug)]
pub(super) enum CopyStep {
    /// The other store has everything.
    Complete,
    /// These files must be copied first.
    NeedsFiles(Box<Files>),
    /// A part was copied, which may be all.
    Copied,
}

/// A thing that the other store lacks.
enum Missing {
    Start(Head, Option<Position>),
    Part(Entry),
    Version(HeldVersion),
    Last(LastStep),
}

/// A needle that was read and verified, and that is appended to the other store.
enum Ready {
    /// The start or a part of an upload.
    Upload(Head, Attributes),
    Version(HeldVersion, StoredObject),
    Last(Box<ReadyLast>),
}

/// The last step, and the objects that it stores, of which those in `to` are read last.
struct ReadyLast {
    step: LastStep,
    newest: Option<StoredObject>,
    retained: Option<StoredObject>,
}

/// Copies a batch of what `to` lacks of a key.
///
/// 1. Locks the key in `from`, and compares both stores.
/// 2. Reads and verifies all needles of the batch. If a file of a big object has no copy yet, returns
///    it, and nothing is stored.
/// 3. Enters `to`, and locks the key there, too. If it has changed since, begins again.
/// 4. Appends the needles to the log of `to`: uploads and their parts, versions from newest to oldest,
///    and in the last batch the newest version, which becomes current. After a crash the log has a
///    prefix of them; both stores together have the state of the key.
/// 5. Waits until they are durable, and applies them.
///
/// # Errors
/// [`crate::Error::Damaged`] if a needle cannot be read; then nothing of the batch is stored.
/// [`crate::Error::Full`] if `to` is full.
pub(super) fn copy_batch(
    from: &Arc<Inner>,
    to: &Inner,
    name: KeyName<'_>,
    files: &mut CopiedFiles,
) -> Result<CopyStep> {
    loop {
        if let Some(step) = try_copy_batch(from, to, name, files)? {
            return Ok(step);
        }
        wait_for_gate(to, name)?;
    }
}

/// Copies a batch like [`copy_batch`]; `None` if the gate of `to` is closed, or the key has changed.
fn try_copy_batch(
    from: &Arc<Inner>,
    to: &Inner,
    name: KeyName<'_>,
    files: &mut CopiedFiles,
) -> Result<Option<CopyStep>> {
    let _source = lock_source(from, to, name)?;
    let here = read_state(from, name)?;
    if here.is_empty() {
        return Ok(Some(CopyStep::Complete));
    }
    let there = peek_state(to, name)?;
    let plan = plan(&here, &there);
    if plan.is_empty() {
        return Ok(Some(CopyStep::Complete));
    }
    let batch = first_batch(plan, name);
    files.update(common(&here, &there));
    let missing_files = files.missing(batch.iter().flat_map(Missing::files));
    if !missing_files.is_empty() {
        let files = Files::pin(from, name.bucket, name.key, &missing_files);
        return Ok(Some(CopyStep::NeedsFiles(Box::new(files))));
    }
    let read = |missing| read(from, name, missing);
    let mut ready: Vec<Ready> = batch.into_iter().map(read).collect::<Result<_>>()?;
    let Some(_writer) = try_enter(to, name)? else { return Ok(None) };
    // Dropped first, as each writer releases its key before it leaves.
    let _target = to.keyspace.keys.lock(name.bucket, name.key);
    check_same_bucket(from, to, name.bucket)?;
    if read_state(to, name)? != there {
        return Ok(None);
    }
    ready.iter_mut().try_for_each(|ready| ready.read_rest(to, name))?;
    let pending = Pending::start(|records| {
        let mut append = |ready| append(to, name, ready, files, records);
        ready.into_iter().try_for_each(&mut append)
    });
    to.finish(pending)?;
    Ok(Some(CopyStep::Copied))
}

/// Returns as much of a plan as fits into a batch, at least one needle.
fn first_batch(plan: Plan, name: KeyName<'_>) -> Vec<Missing> {
    let Plan { uploads, versions, last } = plan;
    let mut missing: Vec<Missing> = Vec::new();
    for MissingUpload { id, start, parts } in uploads {
        if let Some((started, at)) = start {
            let mut head = Head::new(Kind::UploadStarted, name.bucket, name.key);
            (head.version, head.upload) = (started, id);
            missing.push(Missing::Start(head, at));
        }
        missing.extend(parts.into_iter().map(|(_, part)| Missing::Part(part)));
    }
    missing.extend(versions.into_iter().map(Missing::Version));
    missing.extend((!last.is_empty()).then_some(Missing::Last(last)));
    let (mut data_bytes, mut file_bytes) = (0, 0);
    let fits = |missing: &Missing| {
        let fits = data_bytes < BATCH_DATA_BYTES && file_bytes < BATCH_FILE_BYTES;
        file_bytes += missing.files().map(|file| file.bytes).sum::<u64>();
        data_bytes += missing.data_bytes();
        fits
    };
    missing.into_iter().take(BATCH_NEEDLES).take_while(fits).collect()
}

impl Missing {
    fn entry(&self) -> Option<&Entry> {
        match self {
            Self::Part(entry) => Some(entry),
            Self::Version(held) => Some(&held.entry),
            Self::Last(LastStep { newest: Some(Newest::Here(held)), .. }) => Some(&held.entry),
            Self::Start(..) | Self::Last(_) => None,
        }
    }

    /// Returns the files that must be copied first.
    fn files(&self) -> impl Iterator<Item = &FilePart> {
        self.entry().into_iter().flat_map(|entry| &entry.files)
    }

    fn data_bytes(&self) -> u64 {
        self.entry().filter(|entry| entry.files.is_empty()).map_or(0, |entry| entry.bytes)
    }
}

/// Reads what is in `from`.
fn read(from: &Inner, name: KeyName<'_>, missing: Missing) -> Result<Ready> {
    let note = |error: &_| from.volumes.damage.note(name.bucket, name.key, error);
    Ok(match missing {
        Missing::Start(head, None) => Ready::Upload(head, Attributes::new()),
        Missing::Start(_, Some(at)) | Missing::Part(Entry { at, .. }) => {
            let (head, attributes) = from.read_head_at(at).inspect_err(note)?;
            Ready::Upload(head, attributes)
        }
        Missing::Version(held) => {
            let stored = read_version(from, name, &held)?;
            Ready::Version(held, stored)
        }
        Missing::Last(step) => {
            let newest = match &step.newest {
                Some(Newest::Here(held)) => Some(read_version(from, name, held)?),
                Some(Newest::There(_)) | None => None,
            };
            Ready::Last(Box::new(ReadyLast { step, newest, retained: None }))
        }
    })
}

impl Ready {
    /// Reads what is in `to`. The caller has locked the key there.
    fn read_rest(&mut self, to: &Inner, name: KeyName<'_>) -> Result<()> {
        let Self::Last(last) = self else { return Ok(()) };
        let ReadyLast { step, newest, retained } = &mut **last;
        if let Some(Newest::There(held)) = &step.newest {
            *newest = Some(read_version(to, name, held)?);
        }
        if let Some((held, true)) = &step.demoted {
            *retained = Some(read_version(to, name, held)?);
        }
        Ok(())
    }
}

fn read_version(inner: &Inner, name: KeyName<'_>, held: &HeldVersion) -> Result<StoredObject> {
    let NeedleName { bucket, key } = held.needle_name(name);
    read_stored_at(inner, held.entry.at, &bucket, &key)
}

/// Appends a needle to the log of `to`, and adds its record to `records`.
fn append(
    to: &Inner,
    name: KeyName<'_>,
    ready: Ready,
    files: &mut CopiedFiles,
    records: &mut Vec<AppendedRecord>,
) -> Result<()> {
    match ready {
        Ready::Upload(mut head, attributes) => {
            let originals = std::mem::take(&mut head.files);
            head.files = files.copies(&originals)?.into_vec();
            // No later version of `to` may be less than one that it has.
            to.keyspace.clock.advance_past(head.version);
            let ticket = to.append(&head.encode(&attributes), &[], SpacePriority::Ordinary)?;
            files.keep(&originals);
            let change =
                Change { head, replaces: None, reserved: Reserved::nothing(), event: None };
            records.push(AppendedRecord { changes: vec![change], ticket });
            Ok(())
        }
        Ready::Version(held, stored) => {
            let target = held.version_name(name);
            append_copy(to, &target, stored, Replacing::default(), files, records)
        }
        Ready::Last(last) => append_last(to, name, *last, files, records),
    }
}

/// What a new needle replaces.
#[derive(Default)]
struct Replacing {
    object: Option<Replaced>,
    /// Tombstones for the same record.
    tombstones: Vec<Change>,
}

/// Appends the copy of an object of the other store under the name `target`.
fn append_copy(
    to: &Inner,
    target: &NeedleName,
    mut stored: StoredObject,
    replacing: Replacing,
    files: &mut CopiedFiles,
    records: &mut Vec<AppendedRecord>,
) -> Result<()> {
    let originals = std::mem::take(&mut stored.entry.files);
    stored.entry.files = files.copies(&originals)?;
    // No later version of `to` may be less than one that it has.
    to.keyspace.clock.advance_past(stored.entry.version);
    append_own(to, target, &stored, replacing, records)?;
    files.keep(&originals);
    Ok(())
}

/// Appends an object whose files are in `to` under the name `target`.
fn append_own(
    to: &Inner,
    target: &NeedleName,
    stored: &StoredObject,
    replacing: Replacing,
    records: &mut Vec<AppendedRecord>,
) -> Result<()> {
    let Replacing { object, tombstones } = replacing;
    let target = (&*target.bucket, &*target.key);
    // The usage of the pool is the same afterwards.
    let reserved = Reserved::nothing();
    records.push(append_stored(to, stored, target, object, tombstones, reserved)?);
    Ok(())
}

/// Appends the last step: first the copy of the current object of `to` that becomes an older
/// version; then, as one record, the newest version, and tombstones for what it replaces.
fn append_last(
    to: &Inner,
    name: KeyName<'_>,
    last: ReadyLast,
    files: &mut CopiedFiles,
    records: &mut Vec<AppendedRecord>,
) -> Result<()> {
    let ReadyLast { step: LastStep { newest, demoted, superseded }, newest: stored, retained } =
        last;
    let KeyName { bucket, key } = name;
    let gone = |HeldVersion { name, entry, .. }: HeldVersion| {
        version_tombstone(to, bucket, key, VersionRow { name, entry })
    };
    if let (Some((held, _)), Some(retained)) = (&demoted, &retained) {
        append_own(to, &held.version_name(name), retained, Replacing::default(), records)?;
    }
    let mut tombstones: Vec<Change> = superseded.into_iter().map(gone).collect();
    let current = demoted.map(|(held, _)| held.entry);
    let as_current = NeedleName { bucket: bucket.to_owned(), key: key.to_owned() };
    match (newest, stored) {
        (Some(Newest::Here(held)), Some(stored)) if !held.is_delete_marker() => {
            let replacing = Replacing { object: current.map(Replaced::from), tombstones };
            append_copy(to, &as_current, stored, replacing, files, records)
        }
        (Some(Newest::Here(held)), Some(stored)) => {
            tombstones.extend(current.map(|entry| tombstone(to, bucket, key, Some(entry))));
            let replacing = Replacing { object: None, tombstones };
            append_copy(to, &held.version_name(name), stored, replacing, files, records)
        }
        (Some(Newest::There(held)), Some(stored)) => {
            tombstones.push(gone(held));
            let replacing = Replacing { object: current.map(Replaced::from), tombstones };
            append_own(to, &as_current, &stored, replacing, records)
        }
        _ => {
            tombstones.extend(current.map(|entry| tombstone(to, bucket, key, Some(entry))));
            records.push(to.append_heads(tombstones, SpacePriority::Reserve)?);
            Ok(())
        }
    }
}
