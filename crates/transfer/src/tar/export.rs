//! Exports objects to a tar archive.

use std::io::Write;

use haul_file_store::{ListEntry, ListRequest, Object, Result as StoreResult};
use haul_store_pool::Pool;

use super::error::TarExportError;
use super::header::{BLOCK_BYTES, Header, NAME_BYTES_MAX, kind};
use super::path;
use super::pax::Records;
use crate::counter::Counter;
use crate::error::ExportError;
use crate::export::{ExportEvents, Exported, cut_bytes};
use crate::mtime::{MTIME_ATTRIBUTE, Mtime};
use crate::pieces::pieces;

/// The number of objects that are listed and looked up at once.
const PAGE_OBJECTS: usize = 256;

/// An export of objects to a tar archive.
#[derive(Debug, Clone, Copy)]
pub struct TarExport<'a> {
    /// The store that contains the objects.
    pub store: &'a Pool,
    /// The bucket of the objects.
    pub bucket: &'a str,
    /// The prefix of the keys to export. The part up to its last slash is removed from the paths.
    pub prefix: &'a str,
}

impl TarExport<'_> {
    /// Writes all objects to `archive` in the order of their keys, as a PAX archive. Objects that
    /// cannot be read are passed to `events`, and the export continues.
    ///
    /// A key that is not a safe path is escaped, and states its key in a PAX record, from which
    /// [`crate::TarImport`] restores it.
    ///
    /// # Errors
    /// The objects cannot be listed, the archive cannot be written, `events` requests a stop, or an
    /// object that is partly in the archive cannot be read. The archive has then no end mark.
    pub fn run(
        &self,
        archive: &mut dyn Write,
        events: &dyn ExportEvents,
    ) -> Result<Exported, TarExportError> {
        let progress = |objects, bytes| events.progress(objects, bytes);
        let (counter, mut failed) = (Counter::new(&progress), 0);
        let mut after: Option<String> = None;
        loop {
            let (prefix, limit) = (self.prefix, PAGE_OBJECTS);
            let request = ListRequest { prefix, after: after.as_deref(), limit, delimiter: None };
            let page = self.store.list(self.bucket, &request).map_err(TarExportError::List)?;
            after = page.entries.last().map(|line| line.name().to_owned());
            let keys: Vec<&str> = page.entries.iter().map(ListEntry::name).collect();
            for (key, object) in keys.iter().zip(self.look_up(&keys)) {
                if events.is_stopped() {
                    return Err(TarExportError::Stopped);
                }
                let written = match object {
                    Ok(object) => self.write(archive, key, &object, &counter)?,
                    Err(error) => Err(ExportError::Open(error)),
                };
                if let Err(error) = written {
                    failed += 1;
                    events.failed(key, error);
                }
            }
            if !page.more {
                break;
            }
        }
        // Two blocks of zeros end an archive.
        archive.write_all(&[0; 2 * BLOCK_BYTES])?;
        archive.flush()?;
        let (objects, bytes) = counter.done();
        Ok(Exported { objects, bytes, failed })
    }

    /// Looks up the objects of these keys.
    fn look_up(&self, keys: &[&str]) -> impl Iterator<Item = StoreResult<Object>> {
        keys.iter().map(|key| self.store.get(self.bucket, key))
    }

    /// Writes one object. The inner error is that of an object of which nothing was written.
    fn write(
        &self,
        archive: &mut dyn Write,
        key: &str,
        object: &Object,
        counter: &Counter<'_>,
    ) -> Result<Result<(), ExportError>, TarExportError> {
        let bytes = object.info.bytes;
        let mut pieces = pieces(object, 0..bytes);
        // The first piece, which is the whole of a small object, is verified before the header is
        // written.
        let mut piece = match pieces.next().transpose() {
            Ok(first) => first,
            Err(error) => return Ok(Err(error.into())),
        };
        let name = &key[cut_bytes(self.prefix)..];
        archive.write_all(&head(name, object))?;
        let mut part = counter.part();
        while let Some(bytes) = piece {
            archive.write_all(&bytes)?;
            part.more(bytes.len());
            let failed = |source| TarExportError::Content { key: key.to_owned(), source };
            piece = pieces.next().transpose().map_err(failed)?;
        }
        archive.write_all(padding(bytes))?;
        part.finish();
        Ok(Ok(()))
    }
}

/// Returns the headers of a member: a PAX header if the tar header cannot state all of the object,
/// then the tar header.
fn head(name: &str, object: &Object) -> Vec<u8> {
    let (path, attributes) = (path::path(name), &object.attributes);
    let modified = Mtime::from_attributes(attributes);
    let is_derived = |value: &str| modified.is_some_and(|time| time.to_string() == value);
    let time = modified.unwrap_or(object.info.modified.into());
    let bytes = object.info.bytes;
    let (seconds, nanos) = time.parts().unwrap_or_default();
    let is_out_of_range = Header::is_out_of_range(bytes, seconds);
    let is_plain_path = path.len() <= NAME_BYTES_MAX && path.is_ascii();
    let records = Records {
        path: (!is_plain_path).then(|| path.clone().into_bytes()),
        bytes: is_out_of_range.then_some(bytes),
        mtime: (nanos != 0 || is_out_of_range).then_some(time),
        // The import derives the key from the path where it can.
        key: (path::key(path.as_bytes()).as_deref() != Ok(name)).then(|| name.to_owned()),
        has_no_mtime: attributes.get(MTIME_ATTRIBUTE).is_none(),
        attributes: attributes
            .iter()
            .filter(|(name, value)| *name != MTIME_ATTRIBUTE || !is_derived(value))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        ..Records::default()
    };
    let header = Header {
        kind: kind::REGULAR,
        name: path.into_bytes(),
        bytes,
        mtime: seconds,
        ..Header::default()
    };
    let mut out = Vec::new();
    if records != Records::default() {
        let records = records.encode();
        let name = [b"PaxHeaders/", &header.name[..]].concat();
        let bytes = records.len() as u64;
        out.extend(Header { kind: kind::PAX, name, bytes, ..header.clone() }.encode());
        out.extend_from_slice(&records);
        out.extend_from_slice(padding(bytes));
    }
    out.extend(header.encode());
    out
}

/// Returns the zeros between content of this length and the next header.
fn padding(bytes: u64) -> &'static [u8] {
    const ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];
    let padding = bytes.wrapping_neg() % BLOCK_BYTES as u64;
    &ZEROS[..usize::try_from(padding).unwrap_or(0)]
}
