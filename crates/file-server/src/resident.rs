//! What of a file can be had without waiting for a disk.

use std::io::{ErrorKind, IoSliceMut};
use std::os::fd::OwnedFd;

use rustix::io::{Errno, ReadWriteFlags, preadv2, retry_on_intr};

use crate::meta::{OpenFile, mixed};

/// Where residency cannot be asked for, of each so many bytes one is read: the kernel reads ahead
/// in larger steps, and drops what it has not used for long in such steps, too.
const PROBE_BYTES: u64 = 64 << 10;

/// How many bytes of the pages that `from..end` lies in are in memory. All of them only if none has
/// to be waited for. `seed` is another one each time.
pub(crate) fn resident_bytes(fd: &OwnedFd, from: u64, end: u64, seed: u64) -> u64 {
    let span = page_span(from, end);
    match haul_disk::resident(fd, from, end - from) {
        Ok(there) if there.resident_bytes < span => there.resident_bytes,
        // Pages whose read is still under way count as resident, and reads end in order.
        Ok(_) if is_read(fd, end.saturating_sub(1)) => span,
        Ok(_) => span.saturating_sub(1),
        // All or nothing: how much of the rest is there could be told only by beginning to read it.
        Err(error) if is_refused(&error) && probes(from, end, seed).all(|at| is_read(fd, at)) => {
            span
        }
        // Where the kernel does not tell, nothing is there: then nobody waits.
        Err(_) => 0,
    }
}

/// All of a small file, if it is in memory.
pub(crate) fn load_at_once(file: &OpenFile) -> Option<Box<[u8]>> {
    let bytes = file.meta.version.bytes;
    // Asked first: a read that does not wait has the kernel begin to read, and in front of a disk
    // that is busy even that takes time.
    let may_be_there = match haul_disk::resident(&file.fd, 0, bytes) {
        Ok(there) => there.resident_bytes >= bytes,
        Err(error) => is_refused(&error),
    };
    if !may_be_there {
        return None;
    }
    let mut body = vec![0; usize::try_from(bytes).ok()?].into_boxed_slice();
    // Pages whose read is still under way count as resident: only a read that may not wait tells.
    let read = read_at_once(&file.fd, &mut body, 0);
    read.is_ok_and(|read| read == body.len()).then_some(body)
}

/// The kernel does not tell, since others could learn from it what is read here (since Linux 6.14
/// or so): the file belongs to somebody else, and is not ours to write.
fn is_refused(error: &haul_disk::Error) -> bool {
    error.source.kind() == ErrorKind::PermissionDenied
}

/// Where to look whether all is there: at the end, since reads end in order, and at one place of
/// each step, by chance: what is not there is begun to be read, and were the places the same ones
/// each time, they would be there in the end and nothing else. Pure.
fn probes(from: u64, end: u64, seed: u64) -> impl Iterator<Item = u64> {
    let steps = (end - from).div_ceil(PROBE_BYTES);
    let places = (0..steps).map(move |step| {
        let start = from + step * PROBE_BYTES;
        start + mixed(seed ^ start) % PROBE_BYTES.min(end - start)
    });
    end.checked_sub(1).into_iter().chain(places)
}

/// Whether a byte can be read without waiting.
fn is_read(fd: &OwnedFd, at: u64) -> bool {
    // Where reads cannot be asked not to wait, residency has to do.
    matches!(read_at_once(fd, &mut [0], at), Ok(1) | Err(Errno::OPNOTSUPP | Errno::NOSYS))
}

fn read_at_once(fd: &OwnedFd, into: &mut [u8], at: u64) -> rustix::io::Result<usize> {
    let buffers = &mut [IoSliceMut::new(into)];
    retry_on_intr(|| preadv2(fd, &mut *buffers, at, ReadWriteFlags::NOWAIT))
}

/// The bytes of the pages that a range lies in: residency is told in whole pages.
pub(crate) fn page_span(from: u64, end: u64) -> u64 {
    let page_bytes = rustix::param::page_size() as u64;
    end.next_multiple_of(page_bytes) - from / page_bytes * page_bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_probed_and_each_time_elsewhere() {
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
