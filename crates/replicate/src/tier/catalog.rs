//! The copy's segments, and reads of segment ranges.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use parking_lot::RwLock;

use crate::error::{Error, Result};
use crate::manifest::SegmentCopy;
use crate::manifest::names;
use crate::manifest::object::ManifestObject;
use crate::remote::Remote;

/// The segments in the manifests that were loaded.
#[derive(Debug)]
pub(crate) struct Catalog {
    remote: Remote,
    segments: RwLock<HashMap<u32, Arc<SegmentCopy>>>,
}

impl Catalog {
    /// Returns an empty catalog. The first use of a segment loads the manifest.
    pub(crate) fn new(remote: &Remote) -> Self {
        Self { remote: remote.clone(), segments: RwLock::default() }
    }

    pub(crate) fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Loads the manifest. A missing manifest is treated as a copy without segments.
    pub(crate) fn refresh(&self) -> Result<()> {
        let object = ManifestObject::load(&self.remote)?;
        self.add(object.iter().flat_map(|object| &object.current().segments));
        Ok(())
    }

    /// Adds a later manifest's segments. Segments that it lacks stay known, because their objects
    /// exist for some time, in which an earlier state of the store may be read.
    pub(crate) fn add<'a>(&self, segments: impl IntoIterator<Item = &'a SegmentCopy>) {
        let each = segments.into_iter();
        let loaded = each.map(|segment| (segment.number, Arc::new(segment.clone())));
        self.segments.write().extend(loaded);
    }

    /// Returns a complete segment's copy, if it is known.
    pub(crate) fn segment(&self, number: u32, nonce: u64) -> Option<Arc<SegmentCopy>> {
        let segments = self.segments.read();
        segments.get(&number).filter(|copy| copy.nonce == nonce && copy.is_complete).cloned()
    }

    /// Calls `read` with a complete segment's copy. If `read` finds that an object does not exist,
    /// its chunks may have been merged: the manifest is loaded again, and `read` repeated.
    pub(crate) fn with_segment<T>(
        &self,
        number: u32,
        nonce: u64,
        read: &mut dyn FnMut(&SegmentCopy) -> Result<Option<T>>,
    ) -> Result<T> {
        for is_first in [true, false] {
            if let Some(copy) = self.segment(number, nonce)
                && let Some(found) = read(&copy)?
            {
                return Ok(found);
            }
            if is_first {
                self.refresh()?;
            }
        }
        let what = format!("it does not have segment {number}, which is only there");
        Err(Error::Damaged { name: self.remote.full_name(names::MANIFEST), what })
    }

    /// Reads a range from a complete segment. The records in it have checksums, which the log
    /// verifies.
    pub(crate) fn read_segment(
        &self,
        number: u32,
        nonce: u64,
        range: &Range<u64>,
    ) -> Result<Bytes> {
        self.with_segment(number, nonce, &mut |copy| read_chunks(&self.remote, copy, range))
    }

    /// Reads a range from a big object's file.
    pub(crate) fn read_object(&self, name: &str, range: &Range<u64>) -> Result<Bytes> {
        let name = names::file(name);
        self.remote.get_range(&name, range.clone())?.ok_or_else(|| Error::Damaged {
            name: self.remote.full_name(&name),
            what: "it does not exist".to_owned(),
        })
    }
}

/// Reads a range with one request for each chunk; `None` if a chunk does not exist.
fn read_chunks(remote: &Remote, copy: &SegmentCopy, range: &Range<u64>) -> Result<Option<Bytes>> {
    let mut parts = Vec::new();
    for chunk in &copy.chunks {
        let (from, to) = (u64::from(chunk.from), u64::from(chunk.to));
        let (start, end) = (range.start.max(from), range.end.min(to));
        if start < end {
            let within = start - from..end - from;
            match remote.get_range(&names::chunk(copy, chunk), within)? {
                Some(bytes) => parts.push(bytes),
                None => return Ok(None),
            }
        }
    }
    if parts.len() == 1 {
        return Ok(parts.pop());
    }
    let mut all = BytesMut::new();
    parts.iter().for_each(|part| all.extend_from_slice(part));
    Ok(Some(all.freeze()))
}
