//! Implements a FUSE file system with three files: the disk, its counters, and a control file.

use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};

use crate::model::{Kind, SECTOR_BYTES};
use crate::queue::DriveQueue;

const DISK_NODE: INodeNo = INodeNo(2);
const COUNTERS_NODE: INodeNo = INodeNo(3);
const CONTROL_NODE: INodeNo = INodeNo(4);

/// The maximum number of requests that the kernel may have in flight.
const REQUESTS_MAX: u16 = 256;

/// The time for which the kernel may cache names and attributes, which never change.
const ATTRIBUTE_TTL: Duration = Duration::from_secs(3600);

/// A function that executes a command written to the control file. It is called on a new thread.
pub(crate) type ControlHandler = Arc<dyn Fn(ControlCommand) -> Result<(), String> + Send + Sync>;

/// A command that can be written to the control file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ControlCommand {
    /// `cut SEED` cuts the power.
    Cut(u64),
    /// `on` restores the power.
    On,
}

impl ControlCommand {
    fn parse(text: &[u8]) -> Option<Self> {
        let mut words = std::str::from_utf8(text).ok()?.split_whitespace();
        let command = match (words.next()?, words.next()) {
            ("cut", Some(seed)) => Self::Cut(seed.parse().ok()?),
            ("on", None) => Self::On,
            _ => return None,
        };
        words.next().is_none().then_some(command)
    }
}

pub(crate) struct FuseFileSystem {
    pub(crate) queue: Arc<DriveQueue>,
    /// The name of the disk's file.
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) on_control: ControlHandler,
}

impl FuseFileSystem {
    /// Returns each file's name, inode number and permissions.
    fn files(&self) -> [(&str, INodeNo, u16); 3] {
        [
            (&self.name, DISK_NODE, 0o600),
            ("counters.json", COUNTERS_NODE, 0o400),
            ("control", CONTROL_NODE, 0o200),
        ]
    }

    fn attr(&self, ino: INodeNo) -> Option<FileAttr> {
        let perm = self.files().iter().find(|file| file.1 == ino).map(|file| file.2);
        let (kind, perm) = match perm {
            Some(perm) => (FileType::RegularFile, perm),
            None if ino == INodeNo::ROOT => (FileType::Directory, 0o500),
            None => return None,
        };
        let size = if ino == DISK_NODE { self.bytes } else { 0 };
        let time = SystemTime::UNIX_EPOCH;
        Some(FileAttr {
            ino,
            size,
            blocks: size / 512,
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    /// Reads a byte range from the disk. The drive reads the whole sectors that contain the range.
    fn read_disk(&self, offset: u64, size: u32, reply: ReplyData) {
        let end = offset.saturating_add(u64::from(size)).min(self.bytes);
        if offset >= end {
            return reply.data(&[]);
        }
        let sector = offset / SECTOR_BYTES;
        let sectors = end.div_ceil(SECTOR_BYTES) - sector;
        let skip = usize::try_from(offset % SECTOR_BYTES).unwrap_or(0);
        let length = usize::try_from(end - offset).unwrap_or(0);
        let complete = move |outcome: io::Result<Vec<u8>>| match outcome {
            Ok(bytes) => reply.data(&bytes[skip..skip + length]),
            Err(error) => reply.error(error.into()),
        };
        self.queue.submit(Kind::Read, sector, sectors, Vec::new(), Box::new(complete));
    }

    fn write_disk(&self, offset: u64, data: &[u8], size: u32, reply: ReplyWrite) {
        let length = data.len() as u64;
        let is_whole = offset.is_multiple_of(SECTOR_BYTES) && length.is_multiple_of(SECTOR_BYTES);
        if !is_whole || length == 0 || offset.saturating_add(length) > self.bytes {
            return reply.error(Errno::EINVAL);
        }
        let (sector, sectors) = (offset / SECTOR_BYTES, length / SECTOR_BYTES);
        let complete = move |outcome: io::Result<Vec<u8>>| match outcome {
            Ok(_) => reply.written(size),
            Err(error) => reply.error(error.into()),
        };
        self.queue.submit(Kind::Write, sector, sectors, data.to_vec(), Box::new(complete));
    }

    /// Executes a control command on another thread, since the command may wait for disk requests
    /// that this thread serves.
    fn control(&self, data: &[u8], size: u32, reply: ReplyWrite) {
        let Some(command) = ControlCommand::parse(data) else { return reply.error(Errno::EINVAL) };
        let on_control = Arc::clone(&self.on_control);
        std::thread::spawn(move || match on_control(command) {
            Ok(()) => reply.written(size),
            Err(_) => reply.error(Errno::EBUSY),
        });
    }
}

impl Filesystem for FuseFileSystem {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let refused = |what: String| io::Error::other(format!("the kernel's FUSE refuses {what}"));
        // Without this capability the kernel would send direct I/O requests one at a time.
        config
            .add_capabilities(InitFlags::FUSE_ASYNC_DIO)
            .map_err(|missing| refused(format!("{missing:?}")))?;
        for most in
            [config.set_max_background(REQUESTS_MAX), config.set_congestion_threshold(REQUESTS_MAX)]
        {
            most.map_err(|most| {
                refused(format!("{REQUESTS_MAX} requests at once, but not {most}"))
            })?;
        }
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let files = self.files();
        let found = files.iter().find(|file| parent == INodeNo::ROOT && name == file.0);
        match found.and_then(|file| self.attr(file.1)) {
            Some(attr) => reply.entry(&ATTRIBUTE_TTL, &attr, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attr(ino) {
            Some(attr) => reply.attr(&ATTRIBUTE_TTL, &attr),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// Accepts truncating the control file, which a shell redirection requests.
    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        size: Option<u64>,
        _: Option<fuser::TimeOrNow>,
        _: Option<fuser::TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.attr(ino).filter(|_| size.is_none() || ino == CONTROL_NODE) {
            Some(attr) => reply.attr(&ATTRIBUTE_TTL, &attr),
            None => reply.error(Errno::EPERM),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let files = self.files();
        let files = files.iter().enumerate().skip(usize::try_from(offset).unwrap_or(usize::MAX));
        for (index, (name, ino, _)) in files {
            if reply.add(*ino, index as u64 + 1, FileType::RegularFile, name) {
                break;
            }
        }
        reply.ok();
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_DIRECT_IO
            | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
            | FopenFlags::FOPEN_NOFLUSH;
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match ino {
            DISK_NODE => self.read_disk(offset, size, reply),
            COUNTERS_NODE => {
                let text = format!("{:#}\n", self.queue.counters().to_json());
                let begin = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
                let end = begin.saturating_add(size as usize).min(text.len());
                reply.data(&text.as_bytes()[begin..end]);
            }
            _ => reply.error(Errno::EINVAL),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let Ok(size) = u32::try_from(data.len()) else { return reply.error(Errno::EINVAL) };
        match ino {
            DISK_NODE => self.write_disk(offset, data, size, reply),
            CONTROL_NODE => self.control(data, size, reply),
            _ => reply.error(Errno::EINVAL),
        }
    }

    /// Syncs the disk: the loop device translates a cache flush into `fsync`.
    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        if ino != DISK_NODE {
            return reply.ok();
        }
        let complete = move |outcome: io::Result<Vec<u8>>| match outcome {
            Ok(_) => reply.ok(),
            Err(error) => reply.error(error.into()),
        };
        self.queue.submit(Kind::Sync, 0, 0, Vec::new(), Box::new(complete));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_commands_are_parsed_or_refused() {
        for (text, command) in [
            ("cut 7\n", Some(ControlCommand::Cut(7))),
            ("cut 18446744073709551615", Some(ControlCommand::Cut(u64::MAX))),
            ("on\n", Some(ControlCommand::On)),
            ("", None),
            ("cut", None),
            ("cut -1", None),
            ("cut 1 2", None),
            ("on 1", None),
            ("off", None),
        ] {
            assert_eq!(ControlCommand::parse(text.as_bytes()), command, "{text:?}");
        }
        assert_eq!(ControlCommand::parse(b"\xff"), None);
    }
}
