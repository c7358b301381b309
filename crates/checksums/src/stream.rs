//! Hashes a stream, such as stdin.

use std::io::{self, Read};

use haul_bulk_read::digest::{Digest, HashKind, Hasher};

use crate::PIECE_BYTES;
use crate::line::Line;

/// Reads a stream to its end, and returns its digest and its length in bytes.
///
/// # Errors
/// The error of the failed read.
pub fn hash_stream(input: impl Read, kind: HashKind) -> io::Result<(Digest, u64)> {
    let mut hasher = kind.hasher();
    let bytes = hash_all(input, std::slice::from_mut(&mut hasher))?;
    Ok((hasher.finish(), bytes))
}

/// Reads a stream to its end; returns its length in bytes.
fn hash_all(mut input: impl Read, hashers: &mut [Hasher]) -> io::Result<u64> {
    let mut bytes = 0;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match input.read(&mut piece) {
            Ok(0) => return Ok(bytes),
            Ok(read) => {
                hashers.iter_mut().for_each(|hasher| hasher.update(&piece[..read]));
                bytes += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The digests of one stream with several hash functions, such as those of stdin, which the name
/// `-` of a list stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamDigests(Vec<(HashKind, Digest)>);

impl StreamDigests {
    /// Reads the stream if one of the lines is for stdin, with the hash functions that these lines
    /// may have.
    ///
    /// # Errors
    /// The error of the failed read.
    pub fn read_for(lines: &[Line], input: impl Read) -> io::Result<Option<Self>> {
        let may_be = |kind: &HashKind, line: &Line| match line.kind {
            Some(known) => known == *kind,
            None => line.sum.len() == kind.bytes(),
        };
        let lines: Vec<_> = lines.iter().filter(|line| line.is_stdin()).collect();
        let mut kinds = HashKind::ALL.to_vec();
        kinds.retain(|kind| lines.iter().any(|line| may_be(kind, line)));
        if kinds.is_empty() { Ok(None) } else { Self::read(input, &kinds).map(Some) }
    }

    /// Reads the stream with these hash functions.
    pub(crate) fn read(input: impl Read, kinds: &[HashKind]) -> io::Result<Self> {
        let mut hashers: Vec<_> = kinds.iter().map(|kind| kind.hasher()).collect();
        hash_all(input, &mut hashers)?;
        Ok(Self(kinds.iter().copied().zip(hashers.into_iter().map(Hasher::finish)).collect()))
    }

    /// Returns the digest with a hash function; `None` if it was not computed.
    pub(crate) fn get(&self, kind: HashKind) -> Option<&Digest> {
        self.0.iter().find(|(found, _)| *found == kind).map(|(_, digest)| digest)
    }

    /// Returns the first of the hash functions that gives `sum`.
    pub(crate) fn matching(&self, sum: &[u8], candidates: &[HashKind]) -> Option<HashKind> {
        let gives_sum = |kind: &HashKind| self.get(*kind).is_some_and(|it| it.as_bytes() == sum);
        candidates.iter().copied().find(gives_sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_has_the_digest_of_its_bytes() {
        let text = vec![7; PIECE_BYTES + 1];
        for kind in HashKind::ALL {
            let (digest, bytes) = hash_stream(&text[..], kind).unwrap();
            assert_eq!((digest, bytes), (kind.of(&text), text.len() as u64));
        }
    }
}
