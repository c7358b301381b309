//! Describes files: their versions, and the fields of responses, prepared once for all requests.

use std::borrow::Cow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use haul_http_engine::PreparedHead;
use haul_http1::{Date, EntityTag, HeadWriter, InvalidHead, Modified, Validators};
use rustix::fs::{AtFlags, Stat, Statx, StatxFlags, makedev};

use super::content_type::content_type;
use super::freshness::LastCheck;
use super::resident_windows::ResidentWindows;
use crate::file::coding::Coding;

/// The identity of a file, and of its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Version {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) bytes: u64,
    modified: (i64, u64),
    /// Changes even if a write preserves the length and the time of modification.
    changed: (i64, u64),
}

impl Version {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    fn from_statx(found: &Statx) -> Self {
        Self {
            device: makedev(found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            bytes: found.stx_size,
            modified: (found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec.into()),
            changed: (found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec.into()),
        }
    }

    /// `true` if bytes of the file may have been replaced between this state and a later one: the
    /// time of modification differs, and the file is not longer, as after an append.
    pub(crate) fn may_be_rewritten(&self, later: &Self) -> bool {
        later.modified != self.modified && later.bytes <= self.bytes
    }

    /// `true` if the bytes of this state may have been replaced by a later one, as by
    /// [`Self::may_be_rewritten`], also if the time of modification was set back.
    fn may_be_replaced(&self, later: &Self) -> bool {
        (later.modified, later.changed) != (self.modified, self.changed)
            && later.bytes <= self.bytes
    }

    /// Returns a strong entity tag, with its quotes, of the length, both times and the inode. All but
    /// the length are hashed, so that clients do not learn inode numbers. The time of the last change
    /// counts because bytes may be replaced by as many others, and the time of modification set back.
    fn tag(&self, coding: Option<Coding>) -> String {
        let times = [self.modified, self.changed];
        let [modified, changed] = times.map(|(s, ns)| mixed(s.cast_unsigned() ^ mixed(ns)));
        let parts = [modified, changed, self.inode];
        let hash = parts.into_iter().fold(0, |hash, part| mixed(hash ^ part));
        match coding {
            None => format!("\"{:x}-{hash:016x}\"", self.bytes),
            Some(coding) => format!("\"{:x}-{hash:016x}-{}\"", self.bytes, coding.name()),
        }
    }
}

/// Whether the modification date of a file is sent.
///
/// It is never a strong validator (RFC 9110, section 8.8.1): another file may be found at the path
/// by a link or a directory that was replaced, or in another coding, and have the same date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileDate {
    /// The file has none: its time is 0 or 1 second after 1970 or earlier, which stores and archives
    /// write for "no date".
    None,
    /// It is not sent before its second is over for sure, so that two contents of one file are
    /// never seen with one date. A date in the future is not sent at all.
    NotYet,
    /// It is sent.
    Sent,
}

/// Returns the time from which the date of a file is sent: its second is over, also for the times of
/// files, which lag behind the clock, and for `Date`, which is written once a second.
fn date_sent_from(modified_s: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(modified_s).unwrap_or(0) + 2)
}

impl FileDate {
    /// Judges the date of a file at the time `now`.
    fn of(version: &Version, now: SystemTime) -> Self {
        match version.modified.0 {
            ..=1 => Self::None,
            modified_s if now < date_sent_from(modified_s) => Self::NotYet,
            _ => Self::Sent,
        }
    }
}

/// Hashes a number: a bijection in which each bit of the input affects each bit of the output (the
/// finalizer of splitmix64).
pub(crate) fn mixed(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The fields of responses with a file, or an encoded form of it. Small, because the cache holds one
/// for each file: what few responses need is written when they need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) version: Version,
    pub(crate) variant: Variant,
    pub(crate) content_type: Cow<'static, str>,
    date: FileDate,
    cache_control: Option<Arc<str>>,
    /// All fields of a response with status 200.
    pub(crate) whole: PreparedHead,
}

/// The content coding of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Variant {
    pub(crate) coding: Option<Coding>,
    /// The response depends on the codings that the client accepts.
    pub(crate) varies: bool,
}

impl Meta {
    /// Describes the file at `path`.
    ///
    /// # Errors
    /// If the configured `Cache-Control` is not a valid field value.
    pub(crate) fn new(
        path: &[u8],
        stat: &Stat,
        variant: Variant,
        cache_control: Option<Arc<str>>,
    ) -> Result<Self, InvalidHead> {
        let version = Version::of(stat);
        let mut meta = Self {
            version,
            variant,
            content_type: content_type(path),
            date: FileDate::of(&version, SystemTime::now()),
            cache_control,
            whole: PreparedHead::default(),
        };
        meta.whole = PreparedHead::new(|head| {
            meta.write_fields(head);
            head.field("content-type", meta.content_type.as_bytes());
            head.number("content-length", meta.version.bytes);
        })?;
        Ok(meta)
    }

    /// Returns the entity tag, with its quotes.
    pub(crate) fn tag(&self) -> String {
        self.version.tag(self.variant.coding)
    }

    /// Returns `true` if this describes a file in this state, in this variant.
    pub(crate) fn describes(&self, version: Version, variant: Variant) -> bool {
        self.is_current(version) && self.variant == variant
    }

    /// Returns `true` if this describes a file in this state, and need not be written again because
    /// its date may now be sent.
    pub(crate) fn is_current(&self, version: Version) -> bool {
        self.version == version
            && (self.date != FileDate::NotYet
                || SystemTime::now() < date_sent_from(self.version.modified.0))
    }

    /// Returns the time of modification, in whole seconds.
    fn modified_at(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(u64::try_from(self.version.modified.0).unwrap_or(0))
    }

    /// Returns the date of modification, if it is sent.
    fn modified(&self) -> Option<Modified> {
        let is_sent = self.date == FileDate::Sent;
        is_sent.then(|| Modified { at: self.modified_at(), is_strong: false })
    }

    /// Returns the validators, which conditions are evaluated against. `tag` is [`Self::tag`].
    pub(crate) fn validators<'a>(&self, tag: &'a str) -> Validators<'a> {
        Validators { tag: EntityTag::strong(tag.as_bytes()), modified: self.modified() }
    }

    /// Returns `Vary`, if the response has it.
    pub(crate) fn vary(&self) -> Option<(&'static str, &'static str)> {
        self.variant.varies.then_some(("vary", "Accept-Encoding"))
    }

    /// Writes the fields of every response that is not an error, with status 304 too.
    pub(crate) fn write_common_fields(&self, head: &mut HeadWriter<'_>) {
        head.field("etag", self.tag().as_bytes());
        if let Some((name, value)) = self.vary() {
            head.field(name, value.as_bytes());
        }
        if let Some(value) = &self.cache_control {
            head.field("cache-control", value.as_bytes());
        }
    }

    /// Writes the fields of responses with bytes of the file, without type, length and range.
    pub(crate) fn write_fields(&self, head: &mut HeadWriter<'_>) {
        self.write_common_fields(head);
        if let Some(modified) = self.modified() {
            head.field("last-modified", Date::of(modified.at).as_bytes());
        }
        head.field("accept-ranges", b"bytes");
        if let Some(coding) = self.variant.coding {
            head.field("content-encoding", coding.name().as_bytes());
        }
        // The name determines the type, not the content.
        head.field("x-content-type-options", b"nosniff");
    }
}

/// An open file, with its description.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) fd: OwnedFd,
    pub(crate) meta: Meta,
    /// The same file for direct reads, opened by the first thread that needs it; `None` if the file
    /// system does not support them.
    pub(crate) direct: OnceLock<Option<OwnedFd>>,
    pub(crate) resident: ResidentWindows,
}

impl OpenFile {
    pub(crate) fn new(fd: OwnedFd, meta: Meta) -> Self {
        Self { fd, meta, direct: OnceLock::new(), resident: ResidentWindows::default() }
    }
}

impl OpenFile {
    /// `true` if the bytes that the description is of are still those of the file. Costs a system
    /// call that never waits: of a network file system, it asks what the kernel remembers. A file
    /// whose name another one has got was not overwritten, although its status changed.
    pub(crate) fn is_as_described(&self) -> bool {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let now = rustix::fs::statx(&self.fd, c"", flags, StatxFlags::BASIC_STATS);
        now.is_ok_and(|now| {
            let version = Version::from_statx(&now);
            let is_removed = now.stx_nlink == 0 && version.modified == self.meta.version.modified;
            is_removed || !self.meta.version.may_be_replaced(&version)
        })
    }
}

impl AsFd for OpenFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A file in the application cache.
#[derive(Debug)]
pub(crate) struct HotFile {
    pub(crate) meta: Meta,
    pub(crate) body: Bytes,
    pub(crate) checked: LastCheck,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(path: &std::path::Path, variant: Variant) -> Meta {
        let stat = rustix::fs::stat(path).unwrap();
        Meta::new(b"a/b.txt", &stat, variant, Some("no-cache".into())).unwrap()
    }

    #[test]
    fn date_is_sent_once_its_second_is_over() {
        let date = |modified: i64, now: u64| {
            let version = Version {
                device: 1,
                inode: 1,
                bytes: 1,
                modified: (modified, 500_000_000),
                changed: (1000, 600_000_000),
            };
            FileDate::of(&version, UNIX_EPOCH + Duration::from_secs(now))
        };
        for (modified, now, expected) in [
            (1000, 1002, FileDate::Sent),
            (500, 1000, FileDate::Sent),
            // The second is not over, or is in the future.
            (1000, 1000, FileDate::NotYet),
            (1000, 1001, FileDate::NotYet),
            (3000, 1001, FileDate::NotYet),
            // No date.
            (0, 2000, FileDate::None),
            (1, 2000, FileDate::None),
            (-5, 2000, FileDate::None),
        ] {
            assert_eq!(date(modified, now), expected, "{modified} {now}");
        }
    }

    #[test]
    fn entity_tag_changes_with_the_file_and_its_coding() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        std::fs::write(&a, "same").unwrap();
        std::fs::write(&b, "same").unwrap();
        let time = std::fs::metadata(&a).unwrap().modified().unwrap();
        std::fs::File::open(&b).unwrap().set_modified(time).unwrap();
        let plain = Variant::default();
        let gzip = Variant { coding: Some(Coding::Gzip), varies: true };
        let tag = |path, variant| meta(path, variant).tag();
        assert_eq!(tag(&a, plain), tag(&a, plain));
        assert_ne!(tag(&a, plain), tag(&a, gzip));
        assert_ne!(tag(&a, plain), tag(&b, plain), "another inode");
        let before = tag(&a, plain);
        std::fs::File::open(&a).unwrap().set_modified(time + Duration::from_nanos(1)).unwrap();
        assert_ne!(tag(&a, plain), before, "a nanosecond later");
        let before = tag(&a, plain);
        // Longer than the times of files lag behind the clock.
        std::thread::sleep(Duration::from_millis(20));
        std::fs::write(&a, "SAME").unwrap();
        std::fs::File::open(&a).unwrap().set_modified(time + Duration::from_nanos(1)).unwrap();
        assert_ne!(tag(&a, plain), before, "other bytes, with the time set back");
    }

    #[test]
    fn prepared_head_has_all_fields_of_a_complete_response() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "12345").unwrap();
        let time = UNIX_EPOCH + Duration::from_secs(784_111_777);
        std::fs::File::open(&path).unwrap().set_modified(time).unwrap();
        let meta = meta(&path, Variant { coding: Some(Coding::Zstd), varies: true });
        let expected = format!(
            "etag: {}\r\nvary: Accept-Encoding\r\ncache-control: no-cache\r\n\
             last-modified: Sun, 06 Nov 1994 08:49:37 GMT\r\naccept-ranges: bytes\r\n\
             content-encoding: zstd\r\nx-content-type-options: nosniff\r\n\
             content-type: text/plain; charset=utf-8\r\ncontent-length: 5\r\n\r\n",
            meta.tag()
        );
        assert_eq!(str::from_utf8(meta.whole.as_bytes()).unwrap(), expected);
    }
}
