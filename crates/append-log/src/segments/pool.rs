//! Creates, recycles and removes segment files.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use haul_disk::{Disk, Error as DiskError, File, Op, has_holes};
use parking_lot::Mutex;
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::format::{HEADER_BYTES, SegmentHeader, VERSION};
use crate::lsn::Lsn;
use crate::names;
use crate::options::Options;
use crate::segments::header::write_header;
use crate::segments::new_file::{Pace, Preparation, new_file};
use crate::segments::reserve::{Room, left_min};
use crate::segments::{RANDOM, Segment, fresh_salt};

/// A spare file: a removed segment to be recycled, or a reserved file.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) number: u32,
    pub(super) bytes: u32,
    /// The removed segment whose file this is; `None` if the file was found at recovery or created
    /// as a spare.
    segment: Option<Arc<Segment>>,
}

impl Spare {
    /// `true` if no reader uses the file any more, so that it may be overwritten.
    fn is_free(&self) -> bool {
        self.segment.as_ref().is_none_or(|segment| Arc::strong_count(segment) == 1)
    }
}

#[derive(Debug, Default)]
struct Spares {
    /// The spare files of full length. The last [`Pool::reserved`] of them are reserved for
    /// deletions and compaction.
    whole: Vec<Spare>,
    /// The short reserved file, for deletions on a full disk.
    reserve: Option<Spare>,
}

/// The purpose of a new segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The segment accepts all records.
    Ordinary,
    /// The segment is taken from the reserve, for deletions and compaction on a full disk.
    Reserve,
}

/// The spare files of a log, and the creation of new segments.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) options: Options,
    prefills: bool,
    recycles: bool,
    /// The number of the next segment, greater than that of any file. Only one thread at a time
    /// creates segments.
    number: AtomicU32,
    spares: Mutex<Spares>,
    /// The number of spare files of full length to reserve.
    pub(super) reserved: AtomicU32,
    /// The length of the file that is being created; 0 if there is none.
    pub(super) creating_bytes: AtomicU64,
}

impl Pool {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        options: Options,
        (prefills, recycles): (bool, bool),
        highest: u32,
    ) -> Self {
        let number = AtomicU32::new(highest.saturating_add(1));
        let (spares, reserved, creating_bytes) = (Mutex::default(), 0.into(), 0.into());
        Self { disk, options, prefills, recycles, number, spares, reserved, creating_bytes }
    }

    /// Returns the number of spare files of full length, including reserved ones.
    pub(crate) fn spares(&self) -> usize {
        self.spares.lock().whole.len()
    }

    /// Returns a segment ready for its first record: a recycled spare file that is not reserved, or
    /// a new file. If the disk has no space for a file of full length and no segments are reserved,
    /// the new file is shorter. Returns `None` if `pace` cancelled the creation.
    ///
    /// The number of the segment is greater than that of any earlier file, so no LSN is reused.
    pub(crate) fn allocate(
        &self,
        preparation: Preparation,
        follows: Lsn,
        pace: Pace<'_>,
    ) -> Result<Option<Segment>> {
        if let Some(spare) = self.take_spare(Room::Ordinary) {
            return self.reuse(&spare, Purpose::Ordinary, follows).map(Some);
        }
        self.create_new(Room::Ordinary, preparation, follows, pace)
    }

    fn create_new(
        &self,
        room: Room,
        preparation: Preparation,
        follows: Lsn,
        pace: Pace<'_>,
    ) -> Result<Option<Segment>> {
        let purpose = if room == Room::Ordinary { Purpose::Ordinary } else { Purpose::Reserve };
        // If whole segments are reserved, no shorter segment is created. Compaction of a shorter
        // segment would take a whole segment from the reserve, and the file of the removed short
        // segment could not refill the reserve.
        let bytes_min = match room {
            Room::Ordinary if self.reserved.load(Ordering::Relaxed) > 0 => {
                self.options.segment_bytes
            }
            _ => self.options.segment_bytes_min(),
        };
        let mut bytes = self.options.segment_bytes;
        loop {
            let header = self.header(bytes, purpose, follows)?;
            match self.create_within(room, preparation, &header, pace) {
                Ok(segment) => return Ok(segment),
                // After a failed directory sync it is unknown which names are durable, so the
                // creation is not retried.
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

    /// Returns a segment for records with this [`Room`] after [`Pool::allocate`] found no space: a
    /// reserved file, or a new file in the free space that ordinary records may not use. Returns
    /// `None` for ordinary records, or if no such space is left.
    pub(crate) fn allocate_from_reserve(
        &self,
        room: Room,
        follows: Lsn,
    ) -> Result<Option<Segment>> {
        if room == Room::Ordinary {
            return Ok(None);
        }
        let short = || self.spares.lock().reserve.take_if(|spare| spare.is_free());
        if let Some(spare) = self.take_spare(room).or_else(short) {
            return self.reuse(&spare, Purpose::Reserve, follows).map(Some);
        }
        match self.create_new(room, Preparation::Zeroed, follows, &mut |_| true) {
            Err(Error::Full { .. }) => Ok(None),
            made => made,
        }
    }

    /// Creates a new segment if the disk has enough free space for records with this [`Room`].
    fn create_within(
        &self,
        room: Room,
        preparation: Preparation,
        header: &SegmentHeader,
        pace: Pace<'_>,
    ) -> std::result::Result<Option<Segment>, DiskError> {
        let name = names::segment(header.segment);
        if self.creatable_bytes(room).is_ok_and(|has| has.is_some_and(|has| has < header.bytes)) {
            return Err(DiskError::new(Op::Allocate, self.disk.root().join(name), Errno::NOSPC));
        }
        self.creating_bytes.store(header.bytes, Ordering::Relaxed);
        let made = self.create(header, &name, preparation, pace);
        self.creating_bytes.store(0, Ordering::Relaxed);
        made
    }

    /// Creates the missing reserved files of full length. A full disk is not an error: the
    /// preparing thread calls this again after it has created the next segment.
    pub(crate) fn fill_whole_reserve(&self, pace: Pace<'_>) -> Result<()> {
        while self.spares() < self.reserved.load(Ordering::Relaxed) as usize {
            let bytes = self.options.segment_bytes;
            let header = self.header(bytes, Purpose::Reserve, Lsn(0))?;
            let number = header.segment;
            match self.create(&header, &names::spare(number), Preparation::Zeroed, pace) {
                Ok(Some(_)) => {
                    self.spares.lock().whole.push(Spare { number, bytes, segment: None })
                }
                Ok(None) => break,
                Err(error) if error.is_full() && error.op != Op::SyncDir => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Creates the short reserved file if it is missing. A full disk is not an error: the preparing
    /// thread calls this again after it has created the next segment.
    pub(crate) fn fill_short_reserve(&self) -> Result<()> {
        let Some(bytes) = self.options.reserve_segment_bytes() else { return Ok(()) };
        if self.spares.lock().reserve.is_some() {
            return Ok(());
        }
        let number = names::RESERVE;
        let header =
            SegmentHeader { segment: number, ..self.header(bytes, Purpose::Reserve, Lsn(0))? };
        match self.create(&header, &names::spare(number), Preparation::Zeroed, &mut |_| true) {
            Ok(_) => self.spares.lock().reserve = Some(Spare { number, bytes, segment: None }),
            Err(error) if error.is_full() && error.op != Op::SyncDir => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Adds a spare file found by recovery to the pool, or removes the file if it has another
    /// length than needed, has holes, or is not needed.
    pub(crate) fn adopt(&self, number: u32) -> Result<()> {
        let name = names::spare(number);
        let file = self.disk.open(&name, RANDOM)?;
        let (bytes, is_whole) = (file.bytes()?, !has_holes(&*file)?);
        drop(file);
        let is_reserve = number == names::RESERVE;
        let bytes = u32::try_from(bytes).ok().filter(|_| is_whole);
        match bytes {
            Some(bytes) if is_reserve && self.options.takes_as_reserve(bytes) => {
                self.spares.lock().reserve = Some(Spare { number, bytes, segment: None });
            }
            Some(bytes) if !is_reserve && self.keeps_spare(bytes) => {
                self.spares.lock().whole.push(Spare { number, bytes, segment: None });
            }
            _ => self.disk.remove(&name)?,
        }
        Ok(())
    }

    /// Removes a segment from the log. The removal is durable when this returns.
    ///
    /// 1. Renames the file to a spare file, or removes it. After a crash the segment exists as
    ///    before, or not at all.
    /// 2. Syncs the directory. Only then may the file be overwritten: otherwise its name as a
    ///    segment could reappear after a crash and refer to other bytes.
    pub(crate) fn retire(&self, segment: Arc<Segment>) -> Result<()> {
        let (number, bytes) = (segment.number, segment.bytes);
        let name = names::segment(number);
        let keeps = self.keeps_spare(bytes) && !has_holes(&*segment.file)?;
        if keeps {
            self.disk.rename(&name, &names::spare(number))?;
        } else {
            self.disk.remove(&name)?;
        }
        self.disk.sync_dir("")?;
        if keeps {
            self.spares.lock().whole.push(Spare { number, bytes, segment: Some(segment) });
        }
        Ok(())
    }

    /// Writes a header with a new nonce to a segment without records, so that no stale bytes in it
    /// are valid records. The header declares that the log before the segment ends at `follows`.
    pub(crate) fn renew(&self, segment: &Segment, follows: Lsn) -> Result<Segment> {
        self.renew_as(segment, follows, segment.is_recycled)
    }

    /// Renews a segment like [`Pool::renew`] and marks it as recycled. It is used for segments
    /// without records found by recovery, because an interrupted batch may have left bytes after
    /// the first page.
    pub(crate) fn renew_recycled(&self, segment: &Segment, follows: Lsn) -> Result<Segment> {
        self.renew_as(segment, follows, true)
    }

    fn renew_as(&self, segment: &Segment, follows: Lsn, is_recycled: bool) -> Result<Segment> {
        let header = SegmentHeader { follows, is_recycled, ..segment.renewed_header()? };
        write_header(&*segment.file, &header)?;
        Ok(Segment::new(&*self.disk, &header, Arc::clone(&segment.file)))
    }

    /// `true` if the file of a removed segment of this length should be kept as a spare file.
    fn keeps_spare(&self, bytes: u32) -> bool {
        let reserved = self.reserved.load(Ordering::Relaxed);
        let room = reserved.saturating_add(self.options.spare_segments_max) as usize;
        (self.recycles || reserved > 0)
            && bytes == self.options.segment_bytes
            && self.spares.lock().whole.len() < room
    }

    /// Takes a spare file for records with this [`Room`]. Returns `None` if the remaining spare
    /// files are reserved for other records or still in use by readers.
    pub(super) fn take_spare(&self, room: Room) -> Option<Spare> {
        let left_min = left_min(room, self.reserved.load(Ordering::Relaxed));
        let mut spares = self.spares.lock();
        if spares.whole.len() <= left_min {
            return None;
        }
        let free = spares.whole.iter().position(Spare::is_free)?;
        Some(spares.whole.swap_remove(free))
    }

    fn header(&self, bytes: u32, purpose: Purpose, follows: Lsn) -> Result<SegmentHeader> {
        let number = self.number.load(Ordering::Relaxed);
        if number == u32::MAX {
            return Err(Error::Invalid("the log has used up all segment numbers"));
        }
        // The number is incremented only after the segment was created, because creation is often
        // retried on a full disk and would use up the numbers.
        Ok(SegmentHeader {
            version: VERSION,
            segment: number,
            salt: fresh_salt()?,
            bytes: bytes.into(),
            is_reserve: purpose == Purpose::Reserve,
            is_recycled: false,
            follows,
        })
    }

    /// Creates a new segment file.
    ///
    /// 1. Creates a file under a name that recovery removes, and prepares its blocks: fills them with
    ///    zeros and syncs them, so that a later write in place changes no metadata of the file
    ///    system; or only reserves them. They are read as zeros in both cases.
    /// 2. Writes and syncs the header, with a new nonce. The file contains no records.
    /// 3. Renames the file to `name` and syncs the directory. If `name` is that of a segment,
    ///    recovery from now on finds a segment without records, which it uses or removes.
    fn create(
        &self,
        header: &SegmentHeader,
        name: &str,
        preparation: Preparation,
        pace: Pace<'_>,
    ) -> std::result::Result<Option<Segment>, DiskError> {
        let unfinished = names::unfinished(header.segment);
        let preparation = if self.prefills { preparation } else { Preparation::Reserved };
        let made = new_file(&*self.disk, &unfinished, header, preparation, pace);
        let made = made.and_then(|filled| {
            let Some(file) = filled else { return Ok(None) };
            self.disk.rename(&unfinished, name)?;
            self.disk.sync_dir("")?;
            Ok(Some(Segment::new(&*self.disk, header, self.reopen_as(name, file))))
        });
        if let Ok(Some(_)) = made {
            self.number.fetch_max(header.segment + 1, Ordering::Relaxed);
        }
        if !matches!(made, Ok(Some(_))) {
            // Removes the file now instead of at recovery, to free its space. Errors of the removal
            // are ignored, because the error of the creation is reported.
            drop(self.disk.remove(&unfinished));
            drop(self.disk.remove(name));
        }
        made
    }

    /// Recycles a spare file as a segment.
    ///
    /// 1. Writes and syncs both header pages, with a new nonce and a new number, and zeros in the
    ///    page of the first record. The file still has the name of a spare file.
    /// 2. Renames the file to that of the segment and syncs the directory, as in [`Pool::create`].
    fn reuse(&self, spare: &Spare, purpose: Purpose, follows: Lsn) -> Result<Segment> {
        let header = self.header(spare.bytes, purpose, follows)?;
        let header = SegmentHeader { is_recycled: true, ..header };
        let (from, to) = (names::spare(spare.number), names::segment(header.segment));
        let file = self.disk.open(&from, RANDOM)?;
        write_header(&*file, &header)?;
        self.disk.rename(&from, &to)?;
        self.number.store(header.segment + 1, Ordering::Relaxed);
        self.disk.sync_dir("")?;
        Ok(Segment::new(&*self.disk, &header, self.reopen_as(&to, file)))
    }

    /// Opens the file under its new name, so that errors contain this name. If this fails, returns
    /// the old handle: the file already has the number of a segment, and an error would leave a gap
    /// in the log.
    fn reopen_as(&self, name: &str, file: Arc<dyn File>) -> Arc<dyn File> {
        self.disk.open(name, RANDOM).unwrap_or(file)
    }
}
