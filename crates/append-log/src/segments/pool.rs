//! Where segments come from and where they go: made new, or used again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use haul_disk::{Allocation, Disk, Error as DiskError, File, Op, Open, fill_paced, has_holes};
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::format::{HEADER_BYTES, SegmentHeader};
use crate::lsn::Lsn;
use crate::names;
use crate::options::Options;
use crate::segments::{RANDOM, Segment, fresh_salt, write_header};

/// Asked while a segment is filled, with the bytes done: whether to go on. It may wait.
pub(crate) type Pace<'a> = &'a mut dyn FnMut(u64) -> bool;

/// A file to be used again.
#[derive(Debug)]
struct Spare {
    number: u32,
    bytes: u32,
    /// The segment it was, for as long as somebody may read in it.
    was: Option<Arc<Segment>>,
}

impl Spare {
    /// Nobody reads in it any more.
    fn is_free(&self) -> bool {
        self.was.as_ref().is_none_or(|segment| Arc::strong_count(segment) == 1)
    }
}

#[derive(Debug, Default)]
struct Spares {
    ordinary: Vec<Spare>,
    /// The short one that a full disk falls back on.
    reserve: Option<Spare>,
}

/// What a new segment is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Any records.
    Ordinary,
    /// Records that help a full disk.
    Reserve,
}

/// The files of a log that are not in use.
#[derive(Debug)]
pub(crate) struct Pool {
    disk: Arc<dyn Disk>,
    options: Options,
    prefills: bool,
    recycles: bool,
    /// No file has this number or a greater one. One thread at a time makes segments.
    number: AtomicU32,
    spares: Mutex<Spares>,
}

impl Pool {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        options: Options,
        (prefills, recycles): (bool, bool),
        highest: u32,
    ) -> Self {
        let number = AtomicU32::new(highest.saturating_add(1));
        Self { disk, options, prefills, recycles, number, spares: Mutex::default() }
    }

    /// How many files wait to be used again.
    pub(crate) fn spares(&self) -> usize {
        self.spares.lock().ordinary.len()
    }

    /// Makes a segment ready for its first record: of a spare file, or a new one. Where the disk
    /// has no space for a whole one it is made shorter, so that the last space can be used.
    /// `None` when `pace` ended it.
    ///
    /// Its number is behind all that any file ever had: no LSN is given twice.
    pub(crate) fn make(&self, follows: Lsn, pace: Pace<'_>) -> Result<Option<Segment>> {
        if let Some(spare) = self.take_spare() {
            return self.reuse(&spare, Purpose::Ordinary, follows).map(Some);
        }
        let bytes_min = self.options.segment_bytes_min();
        let mut bytes = self.options.segment_bytes;
        loop {
            let header = self.header(bytes, Purpose::Ordinary, follows)?;
            match self.create(&header, &names::segment(header.segment), pace) {
                Ok(segment) => return Ok(segment),
                // Which names survive is not known then, full or not.
                Err(error) if !error.is_full() || error.op == Op::SyncDir => {
                    return Err(error.into());
                }
                Err(error) if bytes == bytes_min => {
                    return Err(Error::Full { source: Arc::new(error) });
                }
                Err(_full) => {
                    bytes = (bytes >> 1).next_multiple_of(HEADER_BYTES).max(bytes_min);
                }
            }
        }
    }

    /// Makes the reserve ready for its first record; `None` where there is none.
    pub(crate) fn make_of_reserve(&self, follows: Lsn) -> Result<Option<Segment>> {
        let mut spares = self.spares.lock();
        let Some(spare) = spares.reserve.take_if(|spare| spare.is_free()) else { return Ok(None) };
        drop(spares);
        self.reuse(&spare, Purpose::Reserve, follows).map(Some)
    }

    /// Sets the reserve aside where there is none. A disk without space for it is no failure:
    /// it is tried again when the next segment is made.
    pub(crate) fn keep_reserve(&self) -> Result<()> {
        let Some(bytes) = self.options.reserve_segment_bytes() else { return Ok(()) };
        if self.spares.lock().reserve.is_some() {
            return Ok(());
        }
        let number = names::RESERVE;
        let header =
            SegmentHeader { segment: number, ..self.header(bytes, Purpose::Reserve, Lsn(0))? };
        match self.create(&header, &names::spare(number), &mut |_| true) {
            Ok(_) => self.spares.lock().reserve = Some(Spare { number, bytes, was: None }),
            Err(error) if error.is_full() && error.op != Op::SyncDir => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// A file that recovery found to be spare.
    pub(crate) fn adopt(&self, number: u32) -> Result<()> {
        let name = names::spare(number);
        let file = self.disk.open(&name, RANDOM)?;
        let (bytes, is_whole) = (file.bytes()?, !has_holes(&*file)?);
        drop(file);
        let is_reserve = number == names::RESERVE;
        let bytes = u32::try_from(bytes).ok().filter(|_| is_whole);
        match bytes {
            Some(bytes) if is_reserve && self.options.reserve_segment_bytes() == Some(bytes) => {
                self.spares.lock().reserve = Some(Spare { number, bytes, was: None });
            }
            Some(bytes) if !is_reserve && self.wants(bytes) => {
                self.spares.lock().ordinary.push(Spare { number, bytes, was: None });
            }
            _ => self.disk.remove(&name)?,
        }
        Ok(())
    }

    /// Takes a segment out of the log: its name is gone for good when this returns.
    ///
    /// 1. The rename, or the removal. After a crash the segment is there as before, or it is not.
    /// 2. The sync of the directory. Only now may the file be used again: a name that comes back
    ///    would come back with other bytes.
    pub(crate) fn retire(&self, segment: Arc<Segment>) -> Result<()> {
        let (number, bytes) = (segment.number, segment.bytes);
        let name = names::segment(number);
        let keeps = !segment.is_reserve && self.wants(bytes) && !has_holes(&*segment.file)?;
        if keeps {
            self.disk.rename(&name, &names::spare(number))?;
        } else {
            self.disk.remove(&name)?;
        }
        self.disk.sync_dir("")?;
        if keeps {
            self.spares.lock().ordinary.push(Spare { number, bytes, was: Some(segment) });
        }
        Ok(())
    }

    /// Gives a segment that was never begun a fresh salt, so that nothing that may be in it
    /// counts, and lets the log before it end at `follows`.
    pub(crate) fn renew(&self, segment: &Segment, follows: Lsn) -> Result<Segment> {
        self.renew_as(segment, follows, segment.is_recycled)
    }

    /// The same, for a segment that was found: behind its first page a batch that never came to
    /// its end may have left something.
    pub(crate) fn renew_found(&self, segment: &Segment, follows: Lsn) -> Result<Segment> {
        self.renew_as(segment, follows, true)
    }

    fn renew_as(&self, segment: &Segment, follows: Lsn, is_recycled: bool) -> Result<Segment> {
        let header = SegmentHeader { follows, is_recycled, ..segment.renewed_header()? };
        write_header(&*segment.file, &header)?;
        Ok(Segment::new(&*self.disk, &header, Arc::clone(&segment.file)))
    }

    /// Whether a file of this length is worth keeping.
    fn wants(&self, bytes: u32) -> bool {
        let room = self.options.spare_segments_max as usize;
        self.recycles
            && bytes == self.options.segment_bytes
            && self.spares.lock().ordinary.len() < room
    }

    fn take_spare(&self) -> Option<Spare> {
        let mut spares = self.spares.lock();
        let free = spares.ordinary.iter().position(Spare::is_free)?;
        Some(spares.ordinary.swap_remove(free))
    }

    fn header(&self, bytes: u32, purpose: Purpose, follows: Lsn) -> Result<SegmentHeader> {
        let number = self.number.load(Ordering::Relaxed);
        if number == u32::MAX {
            return Err(Error::Invalid("the log has used up all segment numbers"));
        }
        // The number counts as used only when the segment is made: a full disk is asked often.
        Ok(SegmentHeader {
            segment: number,
            salt: fresh_salt()?,
            bytes: bytes.into(),
            is_reserve: purpose == Purpose::Reserve,
            is_recycled: false,
            follows,
        })
    }

    /// Makes a file and a segment of it.
    ///
    /// 1. A file of a name that recovery removes, really filled with zeros and synced: from now
    ///    on a write in place changes no metadata.
    /// 2. The header, with a fresh nonce, synced. A reader still finds nothing to read.
    /// 3. The rename to its name, and the sync of the directory: now recovery finds an empty
    ///    segment, which is used or removed.
    fn create(
        &self,
        header: &SegmentHeader,
        name: &str,
        pace: Pace<'_>,
    ) -> std::result::Result<Option<Segment>, DiskError> {
        let unfinished = names::unfinished(header.segment);
        let made = self.fill(header, &unfinished, pace).and_then(|filled| {
            let Some(file) = filled else { return Ok(None) };
            self.disk.rename(&unfinished, name)?;
            self.disk.sync_dir("")?;
            Ok(Some(Segment::new(&*self.disk, header, self.known_as(name, file))))
        });
        if let Ok(Some(_)) = made {
            self.number.fetch_max(header.segment + 1, Ordering::Relaxed);
        }
        if !matches!(made, Ok(Some(_))) {
            // Recovery would remove it too; a full disk is glad to have the space now. That a
            // file cannot be removed is no news beside what already failed.
            drop(self.disk.remove(&unfinished));
            drop(self.disk.remove(name));
        }
        made
    }

    fn fill(
        &self,
        header: &SegmentHeader,
        unfinished: &str,
        pace: Pace<'_>,
    ) -> std::result::Result<Option<Arc<dyn File>>, DiskError> {
        if self.prefills {
            // Past the page cache: nobody will read the zeros, and each step is done when the
            // next one is asked for.
            let file = self.disk.create(unfinished, Open { direct: true, ..Open::default() })?;
            if fill_paced(&*file, header.bytes, pace)?.is_none() {
                return Ok(None);
            }
        } else {
            let file = self.disk.create(unfinished, RANDOM)?;
            // Blocks set aside find a full disk now; where that cannot be done, writing will.
            match file.allocate(Allocation::Reserve, 0, header.bytes) {
                Err(error) if error.is_full() => return Err(error),
                _ => file.resize(header.bytes)?,
            }
        }
        let file = self.disk.open(unfinished, RANDOM)?;
        write_header(&*file, header)?;
        Ok(Some(file))
    }

    /// Makes a segment of a spare file.
    ///
    /// 1. The header, with a fresh nonce and a new number, and a page of zeros where the first
    ///    record goes, synced. The file is still a spare, whatever it holds.
    /// 2. The rename to its name, and the sync of the directory, as for a new one.
    fn reuse(&self, spare: &Spare, purpose: Purpose, follows: Lsn) -> Result<Segment> {
        let header = self.header(spare.bytes, purpose, follows)?;
        let header = SegmentHeader { is_recycled: true, ..header };
        let (from, to) = (names::spare(spare.number), names::segment(header.segment));
        let file = self.disk.open(&from, RANDOM)?;
        write_header(&*file, &header)?;
        self.disk.rename(&from, &to)?;
        self.number.store(header.segment + 1, Ordering::Relaxed);
        self.disk.sync_dir("")?;
        Ok(Segment::new(&*self.disk, &header, self.known_as(&to, file)))
    }

    /// The file under its new name, so that errors tell that one. Nothing may fail here: a number
    /// that was used and never written to would be a hole in the log.
    fn known_as(&self, name: &str, file: Arc<dyn File>) -> Arc<dyn File> {
        self.disk.open(name, RANDOM).unwrap_or(file)
    }
}
