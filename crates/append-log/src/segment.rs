//! One segment: a file of fixed length, filled with zeros before its first record.

use std::path::PathBuf;
use std::sync::Arc;

use haul_disk::{AlignedBuf, Disk, File, Open, fill, read_full, write_full};
use rustix::rand::{GetRandomFlags, getrandom};

use crate::error::{Error, Result};
use crate::format::{
    HEADER_BYTES, Kind, NotAHeader, RECORD_HEADER_BYTES, RecordHeader, SegmentHeader, record_bytes,
};
use crate::lsn::{Lsn, Position};
use crate::names::{self, Name};
use crate::options::Options;

/// An open segment, for positional reads and writes.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u32,
    pub(crate) nonce: u64,
    /// The length the file was made with.
    pub(crate) bytes: u32,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
}

/// The longest segment: 2 GiB, so that no offset in it overflows.
pub(crate) const BYTES_MAX: u32 = 2 << 30;

/// Reads of records jump about, and each wants just its own bytes.
const RANDOM: Open = Open { direct: false, dsync: false, random: true, read_only: false };

impl Segment {
    /// Makes a segment ready for its first record.
    ///
    /// 1. A file of a name that recovery removes, really filled with zeros and synced: from now
    ///    on a write in place changes no metadata.
    /// 2. The header, with a fresh nonce, synced. A reader still finds nothing to read.
    /// 3. The rename to its name, and the sync of the directory: now recovery finds an empty
    ///    segment, which is used or removed.
    ///
    /// Its number is the first behind all that any file has: also a segment whose header is
    /// damaged keeps its name. Where the disk has no space for a whole one it is made shorter, so
    /// that the last space can be used, and with it what helps a full disk can be appended.
    pub(crate) fn create_next(disk: &dyn Disk, options: &Options) -> Result<Self> {
        let number = number_behind_all(disk)?;
        let bytes_min = options.segment_bytes_min();
        let mut bytes = options.segment_bytes;
        loop {
            let error = match Self::create(disk, number, bytes) {
                Ok(segment) => return Ok(segment),
                Err(error) => error,
            };
            // Recovery would remove it too; a full disk is glad to have the space now. That a
            // file cannot be removed is no news beside what already failed.
            drop(disk.remove(&names::unfinished(number)));
            drop(disk.remove(&names::segment(number)));
            if !error.is_full() {
                return Err(error.into());
            }
            if bytes == bytes_min {
                return Err(Error::Full { source: Arc::new(error) });
            }
            bytes = (bytes >> 1).next_multiple_of(HEADER_BYTES).max(bytes_min);
        }
    }

    fn create(disk: &dyn Disk, number: u32, bytes: u32) -> haul_disk::Result<Self> {
        let unfinished = names::unfinished(number);
        let file = disk.create(&unfinished, RANDOM)?;
        fill(&*file, u64::from(bytes))?;

        let mut nonce = [0; 8];
        getrandom(&mut nonce, GetRandomFlags::empty()).map_err(|errno| {
            haul_disk::Error::new(haul_disk::Op::Read, "the kernel's random numbers", errno)
        })?;
        let nonce = u64::from_le_bytes(nonce);
        let mut page = AlignedBuf::zeroed(HEADER_BYTES as usize);
        SegmentHeader { segment: number, nonce, bytes: u64::from(bytes) }.encode(&mut page);
        write_full(&*file, &page, 0)?;
        file.sync(haul_disk::Durability::Data)?;

        let name = names::segment(number);
        disk.rename(&unfinished, &name)?;
        disk.sync_dir("")?;
        Ok(Self { number, nonce, bytes, path: disk.root().join(name), file })
    }

    /// Opens the segment of this number and reads its header.
    pub(crate) fn open(disk: &dyn Disk, number: u32) -> Result<Self> {
        let name = names::segment(number);
        let path = disk.root().join(&name);
        let file = disk.open(&name, RANDOM)?;
        let mut page = vec![0; HEADER_BYTES as usize];
        let read = read_full(&*file, &mut page, 0)?;
        let header = match SegmentHeader::decode(&page[..read]) {
            Ok(header) => header,
            Err(NotAHeader::Version(version)) => {
                let what = format!("it has version {version} of the format");
                return Err(Error::Foreign { file: path, what });
            }
            Err(NotAHeader::NoMagic | NotAHeader::Checksum) => {
                let what = "neither copy of the segment's header checks out".to_owned();
                return Err(Error::Damaged { file: path, offset: 0, what });
            }
        };
        if header.segment != number {
            let what = format!("its header is that of segment {}", header.segment);
            return Err(Error::Foreign { file: path, what });
        }
        let fits = |bytes: &u32| *bytes <= BYTES_MAX && bytes.is_multiple_of(HEADER_BYTES);
        let bytes = u32::try_from(header.bytes).ok().filter(fits);
        let Some(bytes) = bytes.filter(|bytes| *bytes > HEADER_BYTES) else {
            let what = format!("its header states a length of {} bytes", header.bytes);
            return Err(Error::Foreign { file: path, what });
        };
        Ok(Self { number, nonce: header.nonce, bytes, path, file })
    }

    /// A second handle for reading from one end to the other, with the kernel's readahead.
    pub(crate) fn sequential(&self, disk: &dyn Disk) -> Result<Arc<dyn File>> {
        let how = Open { read_only: true, ..Open::default() };
        Ok(disk.open(&names::segment(self.number), how)?)
    }

    /// Where records must end, so that the seal still fits behind them.
    pub(crate) fn records_end(&self) -> u32 {
        self.bytes - u32::try_from(record_bytes(0)).expect("a seal is a few bytes")
    }

    /// Reads a record with one request and checks it. The payload begins at
    /// [`RECORD_HEADER_BYTES`] of what is returned.
    pub(crate) fn read(&self, at: Position) -> Result<Vec<u8>> {
        let bytes = RECORD_HEADER_BYTES + at.payload_bytes as usize;
        let mut record = vec![0; bytes];
        let read = read_full(&*self.file, &mut record, u64::from(at.lsn.offset()))?;
        if read < bytes {
            return Err(self.damaged(at.lsn, "the file ends within the record"));
        }
        match RecordHeader::decode(self.nonce, &record, at.lsn) {
            Some(header)
                if header.kind == Kind::Data && header.is_of(&record[RECORD_HEADER_BYTES..]) =>
            {
                Ok(record)
            }
            Some(_) => Err(self.damaged(at.lsn, "the record's checksum does not match its bytes")),
            None => Err(self.damaged(at.lsn, "there is no record where one was written")),
        }
    }

    fn damaged(&self, lsn: Lsn, what: &str) -> Error {
        let offset = u64::from(lsn.offset());
        Error::Damaged { file: self.path.clone(), offset, what: what.to_owned() }
    }
}

fn number_behind_all(disk: &dyn Disk) -> Result<u32> {
    let numbers = disk.list("")?.into_iter().filter_map(|name| match names::parse(&name) {
        Name::Segment(number) => Some(number),
        Name::Unfinished | Name::Other => None,
    });
    let highest = numbers.max().unwrap_or(0);
    highest.checked_add(1).ok_or(Error::Invalid("the log has used up all segment numbers"))
}
