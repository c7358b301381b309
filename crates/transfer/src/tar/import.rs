//! Imports the members of a tar archive.
//!
//! One thread reads the archive while another one stores the members in their order, in batches that
//! share syncs: if an archive has several members of the same name, the last one wins.

use std::io::Read;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::{mem, panic, thread};

use haul_file_store::{Attributes, ObjectLock};
use haul_store_pool::Pool;

use super::batch::{Content, Item, Storer};
use super::error::{MemberError, TarError};
use super::path;
use super::reader::{Member, MemberKind, Reader};
use crate::counter::Counter;
use crate::import::{ImportEvents, Imported, is_stored};
use crate::mtime::{MTIME_ATTRIBUTE, Mtime};
use crate::pieces::PIECE_BYTES;

/// The maximum number of members in a batch, and of their bytes.
const BATCH_ITEMS: usize = 4096;
const BATCH_BYTES: usize = 4 << 20;

/// An import of a tar archive.
#[derive(Debug, Clone, Copy)]
pub struct TarImport<'a> {
    /// The store to import into.
    pub store: &'a Pool,
    /// The destination bucket, which must exist.
    pub bucket: &'a str,
    /// The prefix of every key, used as is.
    pub prefix: &'a str,
    /// The length in bytes from which on a member is streamed to the store instead of read into
    /// memory. It should equal [`haul_file_store::Options::big_object_bytes`].
    pub big_object_bytes: u64,
    /// `true` to skip members that are already stored with the same size and modification time.
    pub skip_existing: bool,
}

/// The numbers of members processed by the import of an archive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TarImported {
    /// The members that are files or hard links. Those stored are durable.
    pub imported: Imported,
    /// The number of symbolic links, which are skipped.
    pub links: u64,
    /// The number of devices, FIFOs and members of unknown kinds, which are skipped.
    pub special: u64,
    /// `true` if the archive was read to its end.
    pub is_complete: bool,
}

impl TarImport<'_> {
    /// Stores the members of `archive`, each under the prefix and its path; without the slash at the
    /// beginning of the path, and without empty and `.` components. A hard link becomes a copy of
    /// the object it refers to. Members written by [`crate::TarExport`] get exactly the keys and
    /// attributes of the exported objects.
    ///
    /// Members that cannot be stored are passed to `events`, with their paths, and the import
    /// continues. Returns the numbers of members processed, even if the import failed.
    ///
    /// # Errors
    /// The archive cannot be read, is damaged or truncated, or the store failed.
    ///
    /// # Durability
    /// The counted objects survive a power cut when this returns.
    pub fn run(
        &self,
        archive: &mut dyn Read,
        events: &dyn ImportEvents,
    ) -> (TarImported, Result<(), TarError>) {
        let progress = |files, bytes| events.progress(files, bytes);
        let (counter, failed) = (Counter::new(&progress), AtomicU64::new(0));
        let (store, bucket) = (self.store, self.bucket);
        let storer = &Storer { store, bucket, events, counter: &counter, failed: &failed };
        let mut seen = TarImported::default();
        let result = thread::scope(|scope| {
            let (sender, batches) = sync_channel(1);
            let storing = scope.spawn(move || storer.run(batches));
            let reading = MemberReader {
                work: self,
                reader: Reader::new(archive),
                storer,
                sender,
                batch: Vec::new(),
                batch_bytes: 0,
            };
            let read = reading.run(events, &mut seen);
            let stored = storing.join().unwrap_or_else(|payload| panic::resume_unwind(payload));
            // An error of the store closes the channel, and only thereby ends the reading.
            stored.and(read)
        });
        let (files, bytes) = counter.done();
        seen.imported = Imported { files, bytes, failed: failed.into_inner(), ..seen.imported };
        (seen, result)
    }
}

/// Reads members, and sends them to the thread that stores them.
struct MemberReader<'a> {
    work: &'a TarImport<'a>,
    reader: Reader<&'a mut dyn Read>,
    storer: &'a Storer<'a>,
    sender: SyncSender<Vec<Item>>,
    batch: Vec<Item>,
    batch_bytes: usize,
}

impl MemberReader<'_> {
    fn run(mut self, events: &dyn ImportEvents, seen: &mut TarImported) -> Result<(), TarError> {
        let read = self.read(events, seen);
        // The members before a damaged place are stored.
        self.send();
        read
    }

    fn read(&mut self, events: &dyn ImportEvents, seen: &mut TarImported) -> Result<(), TarError> {
        while !events.is_stopped() {
            let Some(member) = self.reader.next()? else {
                seen.is_complete = true;
                return Ok(());
            };
            match member.kind {
                MemberKind::Directory => {}
                MemberKind::Symlink => seen.links += 1,
                MemberKind::Other => seen.special += 1,
                MemberKind::Sparse => self.refuse(&member, &MemberError::Sparse),
                MemberKind::Regular | MemberKind::HardLink => match self.key(&member) {
                    Err(why) => self.refuse(&member, &MemberError::Name(why)),
                    Ok(key) if self.is_stored(&member, &key)? => seen.imported.same += 1,
                    Ok(key) => self.take(&member, key)?,
                },
            }
            if (self.batch.len() >= BATCH_ITEMS || self.batch_bytes >= BATCH_BYTES) && !self.send()
            {
                // The other thread has the error.
                return Ok(());
            }
        }
        Ok(())
    }

    /// Sends the batch; `false` if the store failed.
    fn send(&mut self) -> bool {
        self.batch_bytes = 0;
        self.sender.send(mem::take(&mut self.batch)).is_ok()
    }

    fn refuse(&self, member: &Member, error: &MemberError) {
        self.storer.report(&String::from_utf8_lossy(&member.path), error);
    }

    fn key(&self, member: &Member) -> Result<String, &'static str> {
        let name = match &member.records.key {
            Some(key) => key.clone(),
            None => path::key(&member.path)?,
        };
        Ok(format!("{}{name}", self.work.prefix))
    }

    fn is_stored(&self, member: &Member, key: &str) -> Result<bool, TarError> {
        let TarImport { store, bucket, skip_existing, .. } = *self.work;
        let is_candidate =
            skip_existing && member.kind == MemberKind::Regular && !member.records.has_no_mtime;
        if !is_candidate {
            return Ok(false);
        }
        let modified = Mtime::from_attributes(&attributes(member));
        let found = modified.map(|modified| is_stored(store, bucket, key, member.bytes, modified));
        let failed = |source| TarError::Store { key: key.to_owned(), source };
        found.unwrap_or(Ok(false)).map_err(failed)
    }

    /// Reads the content of a member and adds it to the batch.
    fn take(&mut self, member: &Member, key: String) -> Result<(), TarError> {
        let content = if member.kind == MemberKind::HardLink && member.bytes == 0 {
            match path::key(&member.link) {
                Ok(target) => Content::LinkTo(format!("{}{target}", self.work.prefix)),
                Err(why) => {
                    self.refuse(member, &MemberError::Name(why));
                    return Ok(());
                }
            }
        } else if member.bytes < self.work.big_object_bytes {
            let bytes = self.reader.read_all()?;
            self.batch_bytes += bytes.len();
            Content::Small(bytes)
        } else {
            self.stream(member.bytes, &key)?
        };
        self.batch.push(Item { key, content, attributes: attributes(member) });
        Ok(())
    }

    fn stream(&mut self, bytes: u64, key: &str) -> Result<Content, TarError> {
        let failed = |source| TarError::Store { key: key.to_owned(), source };
        let TarImport { store, bucket, .. } = *self.work;
        let mut writer = store.object_writer(bucket, key, Some(bytes)).map_err(failed)?;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match self.reader.read(&mut piece)? {
                0 => return Ok(Content::Big(writer.finish().map_err(failed)?)),
                read => writer.write(&piece[..read]).map_err(failed)?,
            }
        }
    }
}

/// Returns the attributes of the object that a member becomes.
fn attributes(member: &Member) -> Attributes {
    let mut attributes = Attributes::new();
    if !member.records.has_no_mtime {
        attributes.set(MTIME_ATTRIBUTE, member.mtime.to_string());
    }
    for (name, value) in &member.records.attributes {
        attributes.set(name, value);
    }
    // A lock is not part of the content: the default retention of the bucket applies.
    ObjectLock::remove_from(&mut attributes);
    attributes
}
