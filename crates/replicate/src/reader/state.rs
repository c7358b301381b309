//! Creates a state's directory from the directory that follows the copy.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use haul_append_log::{Lsn, RebuiltSegment, segment_name};
use haul_disk::{Disk, Open, Subdir, read_full, write_full};

use crate::error::{Error, Result};
use crate::follow::write_small_files;
use crate::manifest::names::VOLUMES;
use crate::manifest::{Manifest, SegmentCopy};
use crate::tier::disk::create_marker;
use crate::tier::stub;

const READ: Open = Open { direct: false, dsync: false, random: false, read_only: true };

/// The number of bytes copied at a time.
const COPY_BYTES: usize = 1 << 20;

/// The stubs in the directory that follows the copy, by their segments' number and nonce.
#[derive(Debug, Default)]
pub(super) struct Stubs(HashMap<u32, u64>);

impl Stubs {
    /// Removes the stubs that an earlier process left.
    pub(super) fn remove_all(followed: &dyn Disk) -> Result<Self> {
        let names = match followed.list(VOLUMES) {
            Err(error) if error.is_not_found() => Vec::new(),
            listed => listed?,
        };
        for name in names.iter().filter(|name| stub::segment_of(name).is_some()) {
            followed.remove(&format!("{VOLUMES}/{name}"))?;
        }
        Ok(Self::default())
    }

    /// Creates a manifest's missing stubs, and removes other segments' stubs.
    fn update(&mut self, volumes: &dyn Disk, manifest: &Manifest) -> Result<()> {
        let segments = manifest.segments.iter().filter(|segment| !manifest.is_recent(segment));
        let wanted: HashMap<u32, &SegmentCopy> =
            segments.map(|segment| (segment.number, segment)).collect();
        let is_unwanted = |number: &u32, nonce: &mut u64| {
            wanted.get(number).is_none_or(|segment| segment.nonce != *nonce)
        };
        for (number, _) in self.0.extract_if(is_unwanted) {
            volumes.remove(&stub::name(&segment_name(number)))?;
        }
        for (number, segment) in wanted {
            if let Entry::Vacant(missing) = self.0.entry(number) {
                stub::create(volumes, &segment_name(number), segment)?;
                missing.insert(segment.nonce);
            }
        }
        Ok(())
    }
}

/// Makes the empty directory `state` a store in a manifest's state, which `followed` has.
///
/// Complete segments, stubs and index files do not change: a link to each suffices. Opening the
/// store changes its last segment, which is copied.
pub(super) fn create(
    followed: &Arc<dyn Disk>,
    state: &Arc<dyn Disk>,
    manifest: &Manifest,
    stubs: &mut Stubs,
) -> Result<()> {
    let [from, to] = [followed, state].map(|disk| Subdir::new(Arc::clone(disk), VOLUMES));
    stubs.update(&from, manifest)?;
    create_marker(&**state)?;
    for segment in &manifest.segments {
        let name = segment_name(segment.number);
        if !segment.is_complete {
            copy_segment(&from, &to, segment, manifest.end())?;
        } else if manifest.is_recent(segment) {
            link(&from, &to, &name)?;
        } else {
            link(&from, &to, &stub::name(&name))?;
        }
    }
    for file in &manifest.index {
        link(&**followed, &**state, &file.name)?;
    }
    write_small_files(&**state, manifest)
}

/// Links a file, or copies it if the disk has no links.
fn link(from: &dyn Disk, to: &dyn Disk, name: &str) -> Result<()> {
    let file = from.open(name, READ)?;
    if to.link(&*file, name).is_ok() {
        return Ok(());
    }
    let copy = to.create(name, Open::default())?;
    let (bytes, mut at, mut buffer) = (file.bytes()?, 0, vec![0; COPY_BYTES]);
    while at < bytes {
        let read = read_full(&*file, &mut buffer, at)?;
        if read == 0 {
            break;
        }
        write_full(&*copy, &buffer[..read], at)?;
        at += read as u64;
    }
    Ok(())
}

/// Copies a segment's records. The log ends at `end`.
fn copy_segment(from: &dyn Disk, to: &dyn Disk, segment: &SegmentCopy, end: Lsn) -> Result<()> {
    let header = segment.header_page();
    let missing = || Error::Invalid(format!("segment {} was not fetched", segment.number));
    let file = RebuiltSegment::open(from, &header)?.ok_or_else(missing)?;
    let copy = RebuiltSegment::create(to, &header)?;
    let is_last = segment.number == end.segment();
    let end = if is_last { end.offset() } else { segment.chunks_end() };
    let (mut at, mut written) = (0, Ok(()));
    file.read(0, end, &mut |piece| {
        if written.is_ok() {
            written = copy.write(at, piece);
        }
        at += u32::try_from(piece.len()).unwrap_or(u32::MAX);
    })?;
    Ok(written?)
}
