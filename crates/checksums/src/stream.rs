//! Hashes a stream, such as stdin.

use std::io::{self, Read};

use haul_bulk_read::digest::{Digest, HashKind};

use crate::PIECE_BYTES;

/// Reads a stream to its end, and returns its digest and its length in bytes.
///
/// # Errors
/// The error of the failed read.
pub fn hash_stream(mut input: impl Read, kind: HashKind) -> io::Result<(Digest, u64)> {
    let (mut hasher, mut bytes) = (kind.hasher(), 0);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match input.read(&mut piece) {
            Ok(0) => return Ok((hasher.finish(), bytes)),
            Ok(read) => {
                hasher.update(&piece[..read]);
                bytes += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
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
