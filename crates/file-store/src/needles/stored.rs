//! Reads an object as it is stored, and stores it unchanged under another key.

use std::sync::Arc;

use bytes::Bytes;
use haul_append_log::SpacePriority;

use crate::error::Result;
use crate::format::{Head, Kind, block_checksums};
use crate::index::entry::{Change, Entry, Replaced};
use crate::index::quotas::Reserved;
use crate::inner::Inner;
use crate::needles::apply::AppendedRecord;
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

/// Stores an object unchanged, with its version, under another key: appends its needle. The caller
/// has locked this key. `replaces` is the key's object. `tombstones` are for the same
/// record.
///
/// # Durability
/// All changes survive a power cut once the record is durable, or none was made.
pub(crate) fn append_stored(
    inner: &Inner,
    stored: &StoredObject,
    (bucket, key): (&str, &str),
    replaces: Option<Replaced>,
    tombstones: Vec<Change>,
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
    let ticket =
        inner.append_with_tombstones(&encoded, data, &tombstones, SpacePriority::Ordinary)?;
    inner.maintenance.admission.admit_now((encoded.len() + data.len()) as u64);
    if let Some(file) = &mut file {
        file.keep();
    }
    let object = Change { head, replaces, reserved };
    Ok(AppendedRecord { changes: std::iter::once(object).chain(tombstones).collect(), ticket })
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
