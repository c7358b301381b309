//! Reads an object as it is stored, and stores it unchanged under another key.

use std::sync::Arc;

use bytes::Bytes;
use haul_append_log::{Position, SpacePriority};

use crate::error::Result;
use crate::format::{Head, Kind, block_checksums};
use crate::index::entry::{Change, Entry, Replaced};
use crate::index::quotas::Reserved;
use crate::inner::Inner;
use crate::needles::apply::AppendedRecord;
use crate::needles::lookup::Read;
use crate::needles::object::Content;
use crate::needles::written::{Content as Written, ObjectWriter, UnreferencedFile};
use crate::object::Attributes;

/// An object that was read whole, with its exact version. The data of a big object is in its files.
#[derive(Debug)]
pub(crate) struct StoredObject {
    pub(crate) entry: Entry,
    pub(crate) attributes: Attributes,
    data: Bytes,
}

/// Reads an object in any bucket. The caller has locked the key, so that a big object's files stay.
///
/// # Errors
/// Fails like [`Inner::look_up`], without the test of the bucket.
pub(crate) fn read_stored(inner: &Inner, bucket: &str, key: &str) -> Result<StoredObject> {
    let read = |candidate| inner.read_content(candidate, bucket, key);
    let (entry, (attributes, content)) =
        inner.look_up_in(inner.keyspace.index.read(), bucket, key, read)?;
    let data = match content {
        Content::Memory(bytes) => bytes,
        Content::Head(_) | Content::Blocks(_) | Content::Locked(_) | Content::Files(_) => {
            Bytes::new()
        }
    };
    Ok(StoredObject { entry, attributes, data })
}

/// Reads the object at `at` in any bucket, like [`read_stored`]. Damage to any byte of the record is
/// an error, so the version is always exact. The caller has locked the key and looked it up.
///
/// # Errors
/// [`Error::Damaged`](crate::Error::Damaged), which is also recorded; an error of a read.
pub(crate) fn read_stored_at(
    inner: &Inner,
    at: Position,
    bucket: &str,
    key: &str,
) -> Result<StoredObject> {
    let read = || {
        let record = inner.volumes.log.read(at);
        let record = record.map_err(|error| inner.map_missing_volume(at.lsn, error.into()))?;
        inner.counters.local().needle_read(record.payload().len());
        let Read::Found(entry, (attributes, Content::Memory(data))) =
            inner.content(record, bucket, key)?
        else {
            return Err(inner.damaged(at.lsn, "the needle is not that of the object"));
        };
        let file_bytes: u128 = entry.files.iter().map(|file| u128::from(file.bytes)).sum();
        if !entry.files.is_empty() && file_bytes != u128::from(entry.bytes) {
            return Err(inner.damaged(at.lsn, "its files do not have the length of the object"));
        }
        Ok(StoredObject { entry, attributes, data })
    };
    read().inspect_err(|error| inner.volumes.damage.note(bucket, key, error))
}

/// Stores an object unchanged, with its version, under another key: appends its needle. The caller
/// has locked this key. `replaces` is the key's object. `others` are needles without data for the same
/// record.
///
/// # Durability
/// All changes survive a power cut once the record is durable, or none was made.
pub(crate) fn append_stored(
    inner: &Inner,
    stored: &StoredObject,
    (bucket, key): (&str, &str),
    replaces: Option<Replaced>,
    others: Vec<Change>,
    reserved: Reserved,
) -> Result<AppendedRecord> {
    let entry = &stored.entry;
    let mut head = Head::new(Kind::Object, bucket, key);
    (head.version, head.is_versioned) = (entry.version, entry.is_versioned);
    (head.bytes, head.etag) = (entry.bytes, entry.etag);
    head.files = entry.files.to_vec();
    let mut data = &*stored.data;
    let mut file = new_file(inner, data)?;
    if let Some(file) = &file {
        head.files.extend(file.part());
        data = &[];
    }
    head.blocks = block_checksums(data);
    let encoded = head.encode(&stored.attributes);
    let ticket = inner.append_with(&encoded, data, &others, SpacePriority::Ordinary)?;
    inner.maintenance.admission.admit_now((encoded.len() + data.len()) as u64);
    if let Some(file) = &mut file {
        file.keep();
    }
    let object = Change { head, replaces, reserved, event: None };
    Ok(AppendedRecord { changes: std::iter::once(object).chain(others).collect(), ticket })
}

/// Writes data from a needle to a new file if, after a change of `big_object_bytes`, it belongs in
/// a file.
fn new_file(inner: &Inner, data: &[u8]) -> Result<Option<UnreferencedFile>> {
    let bytes = data.len() as u64;
    if bytes < inner.options.big_object_bytes {
        return Ok(None);
    }
    inner.check_space_for_file(bytes)?;
    let mut writer = ObjectWriter::new(Arc::clone(&inner.objects), 0, Some(bytes))?;
    writer.write(data)?;
    Ok(match writer.finish()?.into_content() {
        (Written::File(file), _) => Some(file),
        (Written::Memory(_), _) => None,
    })
}
