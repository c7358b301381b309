//! What is said about a file, prepared once for all requests.

use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haul_http1::{Date, EntityTag, HeadWriter, InvalidHead, Validators};
use rustix::fs::Stat;

use crate::coding::Coding;
use crate::content_type::content_type;
use crate::tier::ResidentWindows;

/// Which file it is, and which state of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Version {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) bytes: u64,
    modified: (i64, u64),
    /// A change that keeps length and time of the bytes shows here.
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

    /// `true` if bytes of the file may have been replaced between this state and a later one: the
    /// time of modification differs, and the file is not longer, as after an append.
    pub(crate) fn may_be_rewritten(&self, later: &Self) -> bool {
        later.modified != self.modified && later.bytes <= self.bytes
    }

    /// A strong tag, with its quotes: of length, time and inode. Time and inode are mixed, since
    /// an inode is nobody's business.
    fn tag(&self, coding: Option<Coding>) -> String {
        let parts = [self.modified.0.cast_unsigned(), self.modified.1, self.inode];
        let hash = parts.into_iter().fold(0, |hash, part| mixed(hash ^ part));
        match coding {
            None => format!("\"{:x}-{hash:016x}\"", self.bytes),
            Some(coding) => format!("\"{:x}-{hash:016x}-{}\"", self.bytes, coding.name()),
        }
    }
}

/// A bijection whose every bit of input reaches every bit of output: the end of splitmix64.
pub(crate) fn mixed(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Fields of a head: names and values.
pub(crate) type Lines = Vec<(&'static str, String)>;

/// What is said about a file, or an encoded form of it.
#[derive(Debug, Clone)]
pub(crate) struct Meta {
    pub(crate) version: Version,
    pub(crate) tag: String,
    modified: SystemTime,
    pub(crate) content_type: String,
    /// Another client could have got another form.
    pub(crate) varies: bool,
    /// What every answer about the file says, 304 included.
    pub(crate) always: Lines,
    /// What an answer with bytes of the file says besides, but for their type, length and range.
    pub(crate) with_body: Lines,
    /// The head of a plain 200 after its `Date`, with the empty line at its end.
    pub(crate) whole: Vec<u8>,
}

/// How a file was come by.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Chosen {
    pub(crate) coding: Option<Coding>,
    /// Another client could have got another form.
    pub(crate) varies: bool,
}

impl Meta {
    /// About the file at `path`.
    ///
    /// # Errors
    /// When the configured `Cache-Control` cannot be said.
    pub(crate) fn new(
        path: &[u8],
        stat: &Stat,
        chosen: Chosen,
        cache_control: Option<&str>,
    ) -> Result<Self, InvalidHead> {
        let version = Version::of(stat);
        let tag = version.tag(chosen.coding);
        let modified_s = u64::try_from(version.modified.0).unwrap_or(0);
        let modified = UNIX_EPOCH + Duration::from_secs(modified_s);
        let mut always = vec![("ETag", tag.clone())];
        if chosen.varies {
            always.push(("Vary", "Accept-Encoding".to_owned()));
        }
        if let Some(value) = cache_control {
            always.push(("Cache-Control", value.to_owned()));
        }
        let date = String::from_utf8_lossy(Date::of(modified).as_bytes()).into_owned();
        let mut with_body = vec![("Last-Modified", date), ("Accept-Ranges", "bytes".to_owned())];
        if let Some(coding) = chosen.coding {
            with_body.push(("Content-Encoding", coding.name().to_owned()));
        }
        // A file is what its name says, not what its bytes look like.
        with_body.push(("X-Content-Type-Options", "nosniff".to_owned()));
        let content_type = content_type(path).into_owned();
        let mut whole = Vec::new();
        let mut head = HeadWriter::response(&mut whole, 200);
        for (name, value) in always.iter().chain(&with_body) {
            head.field(name, value.as_bytes());
        }
        head.field("Content-Type", content_type.as_bytes());
        head.number("Content-Length", version.bytes);
        head.end()?;
        let first_line_bytes = memchr::memchr(b'\n', &whole).map_or(0, |at| at + 1);
        whole.drain(..first_line_bytes);
        Ok(Self {
            version,
            tag,
            modified,
            content_type,
            varies: chosen.varies,
            always,
            with_body,
            whole,
        })
    }

    /// Returns the validators, which conditions are evaluated against.
    pub(crate) fn validators(&self) -> Validators<'_> {
        Validators { tag: EntityTag::strong(self.tag.as_bytes()), modified: self.modified }
    }
}

/// A file that is open, with what is said about it.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) fd: OwnedFd,
    pub(crate) meta: Meta,
    /// The same file for direct reads, opened by the first thread that needs it; `None` where the
    /// file system has none.
    pub(crate) direct: OnceLock<Option<OwnedFd>>,
    pub(crate) resident: ResidentWindows,
}

impl OpenFile {
    pub(crate) fn new(fd: OwnedFd, meta: Meta) -> Self {
        Self { fd, meta, direct: OnceLock::new(), resident: ResidentWindows::default() }
    }
}

/// The time of the last check that a cached file is the one on the disk, in milliseconds of the
/// server.
#[derive(Debug)]
pub(crate) struct Checked {
    at: AtomicU64,
    /// The time of the check before: the last one may still be under way.
    before: AtomicU64,
}

impl Checked {
    pub(crate) fn at(now_ms: u64) -> Self {
        Self { at: AtomicU64::new(now_ms), before: AtomicU64::new(now_ms) }
    }

    /// Returns `true` if that is less than `valid_ms` ago. Otherwise returns `false` once: that
    /// caller must check, while other callers use what is cached.
    pub(crate) fn is_fresh(&self, now_ms: u64, valid_ms: u64) -> bool {
        if valid_ms == 0 {
            return false;
        }
        let at = self.at.load(Ordering::Relaxed);
        if now_ms < at.saturating_add(valid_ms) {
            return true;
        }
        let claimed = self.at.compare_exchange(at, now_ms, Ordering::Relaxed, Ordering::Relaxed);
        if claimed.is_ok() {
            self.before.store(at, Ordering::Relaxed);
        }
        claimed.is_err()
    }

    /// Returns the time of the last check.
    pub(crate) fn at_ms(&self) -> u64 {
        self.at.load(Ordering::Relaxed)
    }

    /// Returns `true` if it was fresh until `valid_ms` ago, for the caller that must check.
    pub(crate) fn was_fresh(&self, now_ms: u64, valid_ms: u64) -> bool {
        let before = self.before.load(Ordering::Relaxed);
        now_ms < before.saturating_add(valid_ms.saturating_mul(2))
    }
}

/// A file in the application cache.
#[derive(Debug)]
pub(crate) struct HotFile {
    pub(crate) meta: Meta,
    pub(crate) body: Box<[u8]>,
    pub(crate) checked: Checked,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(path: &std::path::Path, chosen: Chosen) -> Meta {
        let stat = rustix::fs::stat(path).unwrap();
        Meta::new(b"a/b.txt", &stat, chosen, Some("no-cache")).unwrap()
    }

    #[test]
    fn a_tag_changes_with_the_file_and_with_its_form() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        std::fs::write(&a, "same").unwrap();
        std::fs::write(&b, "same").unwrap();
        let time = std::fs::metadata(&a).unwrap().modified().unwrap();
        std::fs::File::open(&b).unwrap().set_modified(time).unwrap();
        let plain = Chosen::default();
        let gzip = Chosen { coding: Some(Coding::Gzip), varies: true };
        let tag = |path, chosen| meta(path, chosen).tag;
        assert_eq!(tag(&a, plain), tag(&a, plain));
        assert_ne!(tag(&a, plain), tag(&a, gzip));
        assert_ne!(tag(&a, plain), tag(&b, plain), "another inode");
        let before = tag(&a, plain);
        std::fs::File::open(&a).unwrap().set_modified(time + Duration::from_nanos(1)).unwrap();
        assert_ne!(tag(&a, plain), before, "a nanosecond later");
    }

    #[test]
    fn the_prepared_head_is_the_rest_of_a_plain_answer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "12345").unwrap();
        let time = UNIX_EPOCH + Duration::from_secs(784_111_777);
        std::fs::File::open(&path).unwrap().set_modified(time).unwrap();
        let meta = meta(&path, Chosen { coding: Some(Coding::Zstd), varies: true });
        let expected = format!(
            "ETag: {}\r\nVary: Accept-Encoding\r\nCache-Control: no-cache\r\n\
             Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nAccept-Ranges: bytes\r\n\
             Content-Encoding: zstd\r\nX-Content-Type-Options: nosniff\r\n\
             Content-Type: text/plain; charset=utf-8\r\nContent-Length: 5\r\n\r\n",
            meta.tag
        );
        assert_eq!(str::from_utf8(&meta.whole).unwrap(), expected);
    }
}
