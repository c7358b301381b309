//! Determines how much of a file can be read without waiting for a disk.

use std::io::{ErrorKind, IoSliceMut};
use std::os::fd::OwnedFd;

use rustix::io::{Errno, ReadWriteFlags, preadv2, retry_on_intr};

use bytes::Bytes;

use super::description::{OpenFile, mixed};

/// The distance of the bytes that are probed if the kernel does not report residency: it reads ahead,
/// and evicts, in larger steps.
const PROBE_BYTES: u64 = 64 << 10;

/// Returns the number of bytes in memory of the pages that contain `from..end`: all of them only if
/// no read of them would block. `seed` must differ from call to call.
pub(crate) fn resident_bytes(fd: &OwnedFd, from: u64, end: u64, seed: u64) -> u64 {
    let span = page_span(from, end);
    match haul_disk::resident(fd, from, end - from) {
        Ok(found) if found.resident_bytes < span => found.resident_bytes,
        // Pages whose read is still under way count as resident, and reads end in order.
        Ok(_) if is_readable(fd, end.saturating_sub(1)) => span,
        Ok(_) => span.saturating_sub(1),
        // All or nothing: to find out more, a read of the rest would have to begin.
        Err(error)
            if is_refused(&error) && probes(from, end, seed).all(|at| is_readable(fd, at)) =>
        {
            span
        }
        // Residency is unknown, so a disk thread reads the window.
        Err(_) => 0,
    }
}

/// Returns the content of a small file, if it is in memory.
pub(crate) fn read_resident(file: &OpenFile) -> Option<Bytes> {
    let bytes = file.meta.version.bytes;
    // Checked first: a read that does not wait makes the kernel start to read, and if the disk is
    // busy, even that takes time.
    let may_be_resident = match haul_disk::resident(&file.fd, 0, bytes) {
        Ok(found) => found.resident_bytes >= bytes,
        Err(error) => is_refused(&error),
    };
    if !may_be_resident {
        return None;
    }
    let mut body = vec![0; usize::try_from(bytes).ok()?];
    // Pages whose read is still under way count as resident: only a read that may not wait shows the
    // difference.
    let read = read_nowait(&file.fd, &mut body, 0);
    read.is_ok_and(|read| read == body.len()).then(|| Bytes::from(body))
}

/// Returns `true` if the kernel refuses to report the residency of a file, because it belongs to
/// another user and is not writable (since about Linux 6.14).
fn is_refused(error: &haul_disk::Error) -> bool {
    error.source.kind() == ErrorKind::PermissionDenied
}

/// Returns the offsets to probe: the last byte, since reads complete in order, and one random byte of
/// each step. A probe starts a read of a missing page; if the offsets were always the same, only
/// their pages would be resident in the end.
fn probes(from: u64, end: u64, seed: u64) -> impl Iterator<Item = u64> {
    let steps = (end - from).div_ceil(PROBE_BYTES);
    let places = (0..steps).map(move |step| {
        let start = from + step * PROBE_BYTES;
        start + mixed(seed ^ start) % PROBE_BYTES.min(end - start)
    });
    end.checked_sub(1).into_iter().chain(places)
}

/// Returns `true` if a byte can be read without waiting.
fn is_readable(fd: &OwnedFd, at: u64) -> bool {
    // If the file system does not support such reads, residency must suffice.
    matches!(read_nowait(fd, &mut [0], at), Ok(1) | Err(Errno::OPNOTSUPP | Errno::NOSYS))
}

fn read_nowait(fd: &OwnedFd, into: &mut [u8], at: u64) -> rustix::io::Result<usize> {
    let buffers = &mut [IoSliceMut::new(into)];
    retry_on_intr(|| preadv2(fd, &mut *buffers, at, ReadWriteFlags::NOWAIT))
}

/// Returns the length of the pages that contain a range: residency is reported in whole pages.
pub(crate) fn page_span(from: u64, end: u64) -> u64 {
    let page_bytes = rustix::param::page_size() as u64;
    end.next_multiple_of(page_bytes) - from / page_bytes * page_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_probed_at_a_random_offset() {
        const STEP: u64 = PROBE_BYTES;
        for (from, end) in [(0, 1), (0, STEP), (7, STEP), (3 * STEP + 5, 9 * STEP + 6), (4, 4)] {
            let at: Vec<_> = probes(from, end, 1).collect();
            let in_order = |(step, at): (usize, &u64)| {
                let start = from + step as u64 * STEP;
                (start..end.min(start + STEP)).contains(at)
            };
            assert!(at[1..].iter().enumerate().all(in_order), "{from}..{end}: {at:?}");
            assert_eq!(at.len() as u64, 1 + (end - from).div_ceil(STEP), "{from}..{end}");
            assert!(from == end || at[0] == end - 1, "{from}..{end}: {at:?}");
        }
        let places = |seed| probes(0, 32 * STEP, seed).skip(1).collect::<Vec<_>>();
        assert_eq!(places(1), places(1));
        let same = places(1).iter().zip(places(2)).filter(|(one, other)| *one == other).count();
        assert!(same < 3, "{same}");
    }
}
