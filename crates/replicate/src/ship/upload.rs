//! Uploads local files.

use bytes::Bytes;
use haul_disk::{File, read_full};

use crate::error::{Error, Result};
use crate::manifest::names;
use crate::remote::Remote;
use crate::ship::round::Shipper;
use crate::source::Source;

/// The number of bytes read and sent at a time.
const PIECE_BYTES: usize = 8 << 20;

impl<S: Source> Shipper<S> {
    /// Uploads a file that a record refers to, unless the remote store has it. Returns `false` if
    /// it was removed, because no live record refers to it any more.
    pub(super) fn ship_file(&mut self, name: &str) -> Result<bool> {
        if self.stored_files.has(name) {
            return Ok(true);
        }
        let target = names::file(name);
        let Some(file) = self.source.open_file(name)? else { return Ok(false) };
        let bytes = file.bytes()?;
        // An interrupted upload leaves no object, so an object with this length is complete.
        if self.remote.length(&target)? != Some(bytes) {
            upload(&self.remote, &target, &*file, bytes)?;
        }
        self.stored_files.insert(name);
        Ok(true)
    }
}

/// Uploads `bytes` bytes of a file, and returns the CRC-32C over them.
pub(super) fn upload(remote: &Remote, name: &str, file: &dyn File, bytes: u64) -> Result<u32> {
    let (mut at, mut checksum) = (0, None);
    let mut next = || {
        let wanted = usize::try_from(bytes - at).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        if wanted == 0 {
            return Ok(None);
        }
        let mut piece = vec![0; wanted];
        if read_full(file, &mut piece, at)? < wanted {
            return Err(Error::Invalid(format!("{name} became shorter while it was uploaded")));
        }
        at += wanted as u64;
        checksum = Some(match checksum {
            None => haul_crc::crc32c(&piece),
            Some(before) => haul_crc::crc32c_append(before, &piece),
        });
        Ok(Some(Bytes::from(piece)))
    };
    if bytes > PIECE_BYTES as u64 {
        remote.put_pieces(name, &mut next)?;
    } else {
        let piece = next()?.unwrap_or_default();
        remote.put_all(vec![(name.to_owned(), piece)])?;
    }
    Ok(checksum.unwrap_or_else(|| haul_crc::crc32c(b"")))
}
