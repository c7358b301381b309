//! Creates and recycles segment files.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use haul_disk::{Disk, Error as DiskError, File, Op, link_count};
use haul_sync::Mutex;
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::format::{HEADER_BYTES, SegmentHeader};
use crate::lsn::Lsn;
use crate::names;
use crate::options::Options;
use crate::segments::header::write_header;
use crate::segments::lengths::Lengths;
use crate::segments::new_file::{Pace, Preparation, new_file};
use crate::segments::reserve::SpacePriority;
use crate::segments::spares::{Spare, Spares};
use crate::segments::{RANDOM, Segment, fresh_salt};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The segment accepts all records.
    Ordinary,
    /// The segment is taken from the reserve, for deletions and compaction on a full disk.
    Reserve,
}

/// A log's spare files, and the creation of new segments.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) options: Options,
    prefills: bool,
    pub(super) recycles: bool,
    /// The next segment's number, greater than any file's number. Only one thread at a time creates
    /// segments.
    number: AtomicU32,
    pub(super) spares: Mutex<Spares>,
    pub(super) lengths: Lengths,
    /// The number of full-length spare files to reserve.
    pub(super) reserved: AtomicU32,
    /// The length of the file being created, in bytes; 0 if there is none.
    pub(super) creating_bytes: AtomicU64,
    /// The number of segments that were removed from the log.
    pub(super) removals: AtomicU64,
    /// The number of removed segments whose pages were shared.
    pub(super) locked_removals: AtomicU64,
    /// The segment after which the next one continues the log; 0 if there is none.
    previous: AtomicU32,
}

impl Pool {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        options: Options,
        (prefills, recycles): (bool, bool),
        highest: u32,
    ) -> Self {
        let number = AtomicU32::new(highest.saturating_add(1));
        let (spares, lengths) = (Mutex::default(), Lengths::new(&options));
        let (reserved, creating_bytes, removals, locked_removals) =
            (0.into(), 0.into(), 0.into(), 0.into());
        let previous = AtomicU32::new(0);
        Self {
            disk,
            options,
            prefills,
            recycles,
            number,
            spares,
            lengths,
            reserved,
            creating_bytes,
            removals,
            locked_removals,
            previous,
        }
    }

    /// Returns the number of spare files with full length, including reserved ones.
    pub(crate) fn spares(&self) -> usize {
        self.spares.lock().whole(self.lengths.whole())
    }

    /// `true` if all reserved files of full length exist.
    pub(crate) fn has_whole_reserve(&self) -> bool {
        self.spares() >= self.reserved.load(Ordering::Relaxed) as usize
    }

    /// Sets the segment after which the next created or renewed one continues the log.
    pub(crate) fn set_previous(&self, number: u32) {
        self.previous.store(number, Ordering::Relaxed);
    }

    fn previous(&self) -> Option<u32> {
        let previous = self.previous.load(Ordering::Relaxed);
        (self.options.removes_in_order && previous > 0).then_some(previous)
    }

    /// Updates the length of new segments after recovery found a segment of this length.
    pub(crate) fn found_segment(&self, bytes: u32) {
        self.lengths.add(bytes);
    }

    /// Returns the length of a whole segment, in bytes: the longest segment's length.
    pub(crate) fn whole_bytes(&self) -> u64 {
        self.lengths.whole().into()
    }

    /// Returns the length of the file being created, in bytes; 0 if there is none.
    pub(crate) fn creating_bytes(&self) -> u64 {
        self.creating_bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of segments that were removed from the log. Each removal frees space.
    pub(crate) fn removals(&self) -> u64 {
        self.removals.load(Ordering::Acquire)
    }

    /// Returns the number of removed segments whose pages were shared.
    pub(crate) fn locked_removals(&self) -> u64 {
        self.locked_removals.load(Ordering::Acquire)
    }

    /// Returns the minimum length of a segment for records that fit into an append buffer.
    pub(crate) fn bytes_min(&self) -> u32 {
        self.options.segment_bytes_min()
    }

    /// Returns a segment ready for its first record: a recycled spare file that is not reserved, or
    /// a new file. It has at least `bytes_min` bytes, which a long record needs. If the disk has no
    /// space for a file of full length and no segments are reserved, the new file is shorter.
    /// Returns `None` if `pace` cancelled the creation.
    ///
    /// The segment's number is greater than any earlier file's, so no LSN is reused.
    pub(crate) fn allocate(
        &self,
        bytes_min: u32,
        preparation: Preparation,
        follows: Lsn,
        pace: Pace<'_>,
    ) -> Result<Option<Segment>> {
        if let Some(spare) = self.take_spare(SpacePriority::Ordinary, bytes_min)
            && let Some(segment) = self.reuse(&spare, Purpose::Ordinary, follows)?
        {
            return Ok(Some(segment));
        }
        self.create_new((SpacePriority::Ordinary, bytes_min), preparation, follows, pace)
    }

    fn create_new(
        &self,
        (priority, needed): (SpacePriority, u32),
        preparation: Preparation,
        follows: Lsn,
        pace: Pace<'_>,
    ) -> Result<Option<Segment>> {
        let purpose =
            if priority == SpacePriority::Ordinary { Purpose::Ordinary } else { Purpose::Reserve };
        let whole = self.lengths.whole();
        // If whole segments are reserved, no shorter segment is created. Compaction of a shorter
        // segment would take a whole segment from the reserve, and the removed short segment's file
        // could not refill the reserve.
        let bytes_min = match priority {
            SpacePriority::Ordinary if self.reserved.load(Ordering::Relaxed) > 0 => whole,
            _ => self.bytes_min(),
        };
        let bytes_min = bytes_min.max(needed);
        let bytes = if priority == SpacePriority::Ordinary { self.next_bytes() } else { whole };
        let mut bytes = bytes.max(needed);
        loop {
            let header = self.header(bytes, purpose, follows)?;
            match self.create_within(priority, preparation, &header, pace) {
                Ok(segment) => {
                    if segment.is_some() {
                        self.lengths.add(bytes);
                    }
                    return Ok(segment);
                }
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

    /// Returns the next segment's length for ordinary records.
    fn next_bytes(&self) -> u32 {
        let may_grow = self.lengths.may_grow();
        // If the free space is unknown because of an error, the length does not grow.
        let free = if may_grow { self.disk.free_bytes().unwrap_or(Some(0)) } else { None };
        self.lengths.next(free)
    }

    /// Returns a segment for records with this [`SpacePriority`] after [`Pool::allocate`] found no
    /// space: a reserved file, or a new file in the free space that ordinary records may not use.
    /// The segment has at least `bytes_min` bytes. Returns `None` for ordinary records, or if no
    /// such space is left.
    pub(crate) fn allocate_from_reserve(
        &self,
        priority: SpacePriority,
        bytes_min: u32,
        follows: Lsn,
    ) -> Result<Option<Segment>> {
        if priority == SpacePriority::Ordinary {
            return Ok(None);
        }
        let short = || self.spares.lock().take_short(bytes_min);
        if let Some(spare) = self.take_spare(priority, bytes_min).or_else(short)
            && let Some(segment) = self.reuse(&spare, Purpose::Reserve, follows)?
        {
            return Ok(Some(segment));
        }
        match self.create_new((priority, bytes_min), Preparation::Zeroed, follows, &mut |_| true) {
            Err(Error::Full { .. }) => Ok(None),
            made => made,
        }
    }

    /// Creates a new segment if the disk has enough free space for records with this
    /// [`SpacePriority`].
    fn create_within(
        &self,
        priority: SpacePriority,
        preparation: Preparation,
        header: &SegmentHeader,
        pace: Pace<'_>,
    ) -> std::result::Result<Option<Segment>, DiskError> {
        let name = names::segment(header.segment);
        let creatable =
            self.creatable_bytes(priority, u32::try_from(header.bytes).unwrap_or(u32::MAX));
        if creatable.is_ok_and(|has| has.is_some_and(|has| has < header.bytes)) {
            return Err(DiskError::new(Op::Allocate, self.disk.root().join(name), Errno::NOSPC));
        }
        self.creating_bytes.store(header.bytes, Ordering::Relaxed);
        let made = self.create(header, &name, preparation, pace);
        self.creating_bytes.store(0, Ordering::Relaxed);
        made
    }

    /// Creates the missing reserved files of full length. Then removes the shorter ones, which were
    /// reserved before longer segments were created. A full disk is not an error: the preparing
    /// thread calls this again after it has created the next segment.
    pub(crate) fn fill_whole_reserve(&self, pace: Pace<'_>) -> Result<()> {
        while !self.has_whole_reserve() {
            let bytes = self.lengths.whole();
            let header = self.header(bytes, Purpose::Reserve, Lsn(0))?;
            let number = header.segment;
            match self.create(&header, &names::spare(number), Preparation::Zeroed, pace) {
                Ok(Some(_)) => self.add_spare(number, bytes, None),
                Ok(None) => break,
                Err(error) if error.is_full() && error.op != Op::SyncDir => break,
                Err(error) => return Err(error.into()),
            }
        }
        while let Some(number) = self.take_undersized() {
            self.disk.remove(&names::spare(number))?;
        }
        Ok(())
    }

    pub(super) fn add_spare(&self, number: u32, bytes: u32, segment: Option<Arc<Segment>>) {
        self.lengths.add(bytes);
        let mut spares = self.spares.lock();
        debug_assert!(
            spares.files.iter().all(|spare| spare.number != number),
            "one file, one spare"
        );
        spares.files.push(Spare { number, bytes, segment });
    }

    fn take_undersized(&self) -> Option<u32> {
        let (reserved, whole) = (self.reserved.load(Ordering::Relaxed), self.lengths.whole());
        self.spares.lock().take_undersized(reserved, whole).map(|spare| spare.number)
    }

    /// Creates the short reserved file if it is missing. A full disk is not an error: the preparing
    /// thread calls this again after it has created the next segment.
    pub(crate) fn fill_short_reserve(&self) -> Result<()> {
        let Some(bytes) = self.options.reserve_segment_bytes() else { return Ok(()) };
        if self.spares.lock().short.is_some() {
            return Ok(());
        }
        let number = names::RESERVE;
        let header =
            SegmentHeader { segment: number, ..self.header(bytes, Purpose::Reserve, Lsn(0))? };
        match self.create(&header, &names::spare(number), Preparation::Zeroed, &mut |_| true) {
            Ok(_) => self.spares.lock().short = Some(Spare { number, bytes, segment: None }),
            Err(error) if error.is_full() && error.op != Op::SyncDir => {}
            Err(error) => return Err(error.into()),
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
        let previous = self.previous();
        debug_assert!(previous.is_none_or(|previous| previous < segment.number));
        debug_assert!(follows.segment() < segment.number, "a segment follows one before it");
        let header = SegmentHeader { follows, is_recycled, previous, ..segment.renewed_header()? };
        write_header(&*segment.file, &header)?;
        Ok(Segment::new(&*self.disk, &header, Arc::clone(&segment.file)))
    }

    /// Takes a spare file of at least `bytes_min` bytes for records with this [`SpacePriority`].
    /// Returns `None` if the remaining spare files are shorter, reserved for other records, or
    /// still used by readers.
    pub(super) fn take_spare(&self, priority: SpacePriority, bytes_min: u32) -> Option<Spare> {
        let (reserved, whole) = (self.reserved.load(Ordering::Relaxed), self.lengths.whole());
        let taken = self.spares.lock().take(priority, reserved, whole, bytes_min);
        debug_assert!(taken.as_ref().is_none_or(|spare| spare.bytes >= bytes_min));
        taken
    }

    fn header(&self, bytes: u32, purpose: Purpose, follows: Lsn) -> Result<SegmentHeader> {
        let number = self.number.load(Ordering::Relaxed);
        if number == u32::MAX {
            return Err(Error::Invalid("the log has used up all segment numbers"));
        }
        // The number is incremented only after the segment was created, because creation is often
        // retried on a full disk and would use up the numbers.
        Ok(SegmentHeader {
            segment: number,
            salt: fresh_salt()?,
            bytes: bytes.into(),
            is_reserve: purpose == Purpose::Reserve,
            is_recycled: false,
            follows,
            previous: self.previous(),
        })
    }

    /// Creates a new segment file.
    ///
    /// 1. Creates a file under a name that recovery removes, and prepares its blocks: writes zeros
    ///    to them and syncs them, so that a later write in place changes no file system metadata;
    ///    or only reserves them. They read as zeros in both cases.
    /// 2. Writes and syncs the header, with a new nonce. The file contains no records.
    /// 3. Renames the file to `name` and syncs the directory. If `name` is a segment's name,
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
            // Removes the file now instead of at recovery, to free its space. A failed removal is
            // ignored, because the creation's error is reported.
            drop(self.disk.remove(&unfinished));
            drop(self.disk.remove(name));
        }
        made
    }

    /// Recycles a spare file as a segment. Returns `None` if the file has another name (a hard
    /// link): a copy of the log then shares it, and it only loses its name as a spare file.
    ///
    /// 1. Writes and syncs both header pages, with a new nonce and a new number, and zeros in the
    ///    page for the first record. The file still has a spare file's name.
    /// 2. Renames the file to the segment's name and syncs the directory, as in [`Pool::create`].
    fn reuse(&self, spare: &Spare, purpose: Purpose, follows: Lsn) -> Result<Option<Segment>> {
        let header = self.header(spare.bytes, purpose, follows)?;
        let header = SegmentHeader { is_recycled: true, ..header };
        let (from, to) = (names::spare(spare.number), names::segment(header.segment));
        let file = self.disk.open(&from, RANDOM)?;
        if link_count(&*file)? > 1 {
            self.disk.remove(&from)?;
            return Ok(None);
        }
        debug_assert!(header.segment > spare.number || spare.number == names::RESERVE);
        write_header(&*file, &header)?;
        self.disk.rename(&from, &to)?;
        self.number.store(header.segment + 1, Ordering::Relaxed);
        self.disk.sync_dir("")?;
        Ok(Some(Segment::new(&*self.disk, &header, self.reopen_as(&to, file))))
    }

    /// Opens the file under its new name, so that errors contain this name. If this fails, returns
    /// the old handle: the file already has a segment's number, and an error would leave a gap in
    /// the log.
    fn reopen_as(&self, name: &str, file: Arc<dyn File>) -> Arc<dyn File> {
        self.disk.open(name, RANDOM).unwrap_or(file)
    }
}
