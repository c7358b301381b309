//! Reads the members of a tar archive in order, from any stream.

use std::io::{ErrorKind, Read};

use super::error::TarError;
use super::header::{BLOCK_BYTES, Block, Header, kind, text};
use super::pax::Records;
use crate::mtime::Mtime;

/// The maximum length of a PAX header or of a long name: longer than the keys and attributes of any
/// object.
const EXTENSION_BYTES_MAX: u64 = 1 << 20;

/// The kind of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemberKind {
    Regular,
    HardLink,
    Symlink,
    Directory,
    Sparse,
    /// A device, a FIFO, or a kind that this crate does not know.
    Other,
}

/// A member of an archive. Its content follows in the stream.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) kind: MemberKind,
    pub(super) path: Vec<u8>,
    /// The path of the member that a hard link refers to.
    pub(super) link: Vec<u8>,
    pub(super) bytes: u64,
    pub(super) mtime: Mtime,
    /// The records of the PAX headers that apply to the member.
    pub(super) records: Records,
}

/// A reader of an archive.
pub(super) struct Reader<R> {
    input: R,
    /// The bytes read so far.
    at: u64,
    /// The bytes of the current member that were not read yet, and those of the padding behind it.
    content_left: u64,
    padding: u64,
    global: Records,
}

/// The fields of the next member that extension headers state.
#[derive(Default)]
struct Extensions {
    records: Records,
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
}

impl<R: Read> Reader<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, at: 0, content_left: 0, padding: 0, global: Records::default() }
    }

    /// Skips the rest of the current member and reads the header of the next one; `None` at the end
    /// of the archive.
    pub(super) fn next(&mut self) -> Result<Option<Member>, TarError> {
        let mut extensions = Extensions { records: self.global.clone(), ..Extensions::default() };
        loop {
            self.skip_content()?;
            let at = self.at;
            let Some(header) = self.header()? else {
                self.end()?;
                return Ok(None);
            };
            self.begin_content(header.bytes);
            let malformed = |what| TarError::Malformed { at, what };
            match header.kind {
                kind::PAX | kind::PAX_SOLARIS => {
                    let content = self.extension(at, header.bytes)?;
                    extensions.records.add(&content).map_err(malformed)?;
                }
                kind::PAX_GLOBAL => {
                    let content = self.extension(at, header.bytes)?;
                    self.global.add(&content).map_err(malformed)?;
                    extensions.records.add(&content).map_err(malformed)?;
                }
                kind::GNU_LONG_NAME => {
                    extensions.name = Some(text(&self.extension(at, header.bytes)?).to_vec());
                }
                kind::GNU_LONG_LINK => {
                    extensions.link = Some(text(&self.extension(at, header.bytes)?).to_vec());
                }
                kind::GNU_VOLUME_LABEL => {}
                _ => return Ok(Some(self.member(header, extensions))),
            }
        }
    }

    fn member(&mut self, header: Header, extensions: Extensions) -> Member {
        let Extensions { mut records, name, link } = extensions;
        let path = records.path.take().or(name).unwrap_or(header.name);
        let kind = match header.kind {
            kind::OLD_REGULAR | kind::REGULAR | kind::CONTIGUOUS if path.ends_with(b"/") => {
                MemberKind::Directory
            }
            kind::OLD_REGULAR | kind::REGULAR | kind::CONTIGUOUS if records.is_sparse => {
                MemberKind::Sparse
            }
            kind::OLD_REGULAR | kind::REGULAR | kind::CONTIGUOUS => MemberKind::Regular,
            kind::GNU_SPARSE => MemberKind::Sparse,
            kind::HARD_LINK => MemberKind::HardLink,
            kind::SYMLINK => MemberKind::Symlink,
            kind::DIRECTORY | kind::GNU_DUMP_DIRECTORY => MemberKind::Directory,
            _ => MemberKind::Other,
        };
        let bytes = match header.kind {
            // They have no content, even if the header states a length.
            kind::SYMLINK | kind::DIRECTORY => 0,
            _ => records.bytes.unwrap_or(header.bytes),
        };
        self.begin_content(bytes);
        Member {
            kind,
            path,
            link: records.link.take().or(link).unwrap_or(header.link),
            bytes,
            mtime: records.mtime.unwrap_or(Mtime::new(header.mtime, 0)),
            records,
        }
    }

    /// Reads the next bytes of the current member; returns 0 at its end.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, TarError> {
        let left = usize::try_from(self.content_left).unwrap_or(usize::MAX).min(buffer.len());
        self.fill(&mut buffer[..left])?;
        self.content_left -= left as u64;
        Ok(left)
    }

    /// Reads the rest of the current member, which must fit into memory.
    pub(super) fn read_all(&mut self) -> Result<Vec<u8>, TarError> {
        let mut bytes = vec![0; usize::try_from(self.content_left).unwrap_or(usize::MAX)];
        self.read(&mut bytes)?;
        Ok(bytes)
    }

    fn extension(&mut self, at: u64, bytes: u64) -> Result<Vec<u8>, TarError> {
        if bytes > EXTENSION_BYTES_MAX {
            return Err(TarError::Malformed { at, what: "a PAX header or a name is over 1 MiB" });
        }
        self.read_all()
    }

    fn begin_content(&mut self, bytes: u64) {
        self.content_left = bytes;
        self.padding = bytes.wrapping_neg() % BLOCK_BYTES as u64;
    }

    fn skip_content(&mut self) -> Result<(), TarError> {
        let mut buffer = [0; 16 << 10];
        while self.read(&mut buffer)? > 0 {}
        let padding = usize::try_from(std::mem::take(&mut self.padding)).unwrap_or(0);
        self.fill(&mut buffer[..padding])
    }

    fn header(&mut self) -> Result<Option<Header>, TarError> {
        let (at, mut block) = (self.at, Block::from([0; BLOCK_BYTES]));
        self.fill(&mut block)?;
        Header::decode(&block).map_err(|what| TarError::Malformed { at, what })
    }

    /// Reads the input to its end, so that the program that writes it does not fail. Behind the end
    /// of an archive, there are only zeros.
    fn end(&mut self) -> Result<(), TarError> {
        let mut buffer = [0; 16 << 10];
        loop {
            let read = self.read_some(&mut buffer)?;
            if let Some(data) = buffer[..read].iter().position(|byte| *byte != 0) {
                return Err(TarError::TrailingData { at: self.at + data as u64 });
            }
            self.at += read as u64;
            if read == 0 {
                return Ok(());
            }
        }
    }

    /// Fills the buffer.
    fn fill(&mut self, mut buffer: &mut [u8]) -> Result<(), TarError> {
        while !buffer.is_empty() {
            match self.read_some(buffer)? {
                0 => return Err(TarError::Truncated { at: self.at }),
                read => {
                    self.at += read as u64;
                    buffer = &mut buffer[read..];
                }
            }
        }
        Ok(())
    }

    fn read_some(&mut self, buffer: &mut [u8]) -> Result<usize, TarError> {
        loop {
            match self.input.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(TarError::Read { at: self.at, source }),
                Ok(read) => return Ok(read),
            }
        }
    }
}
