//! Reads the kernel's counters for the requests that a disk has completed.

use std::io;

use super::Device;
use crate::error::{Error, Op, Result};

/// The unit for all sector counts in `/sys`, regardless of the device's sector size.
const SECTOR_BYTES: u64 = 512;

/// Counts the requests that a whole disk has completed since it was attached, for all processes.
///
/// Prefer counts to times as evidence of disk work: unlike times, counts do not depend on the
/// machine's load.
///
/// # Source
/// The kernel's `Documentation/block/stat.rst`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Read requests.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Total read time, in milliseconds.
    pub read_ms: u64,
    /// Write requests. The kernel also counts a flush request without data as a write without
    /// bytes.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Total write time, in milliseconds.
    pub write_ms: u64,
    /// Discard requests.
    pub discards: u64,
    /// Bytes discarded.
    pub discarded_bytes: u64,
    /// Flush requests, each of which makes the device move its volatile write cache to stable
    /// storage. Concurrent syncs share a flush request.
    pub syncs: u64,
    /// Total flush request time, in milliseconds.
    pub sync_ms: u64,
    /// Time with at least one request in flight, in milliseconds.
    pub busy_ms: u64,
}

impl DeviceCounters {
    /// Reads the counters of the whole disk that `device` is on.
    ///
    /// # Errors
    /// Fails if the counters cannot be read: the device is gone, `/sys` is not mounted, or the
    /// kernel is older than Linux 5.5.
    pub fn of(device: &Device) -> Result<Self> {
        let path = device.disk_dir().join("stat");
        let text = std::fs::read_to_string(&path)
            .map_err(|source| Error::new(Op::Status, &path, source))?;
        parse(&text).ok_or_else(|| {
            let why = "expected the 17 counters of Linux 5.5 or newer";
            Error::new(Op::Status, &path, io::Error::new(io::ErrorKind::InvalidData, why))
        })
    }

    /// Returns the increase since `before`; 0 for counters that the kernel has reset in between.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(before.reads),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            read_ms: self.read_ms.saturating_sub(before.read_ms),
            writes: self.writes.saturating_sub(before.writes),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
            write_ms: self.write_ms.saturating_sub(before.write_ms),
            discards: self.discards.saturating_sub(before.discards),
            discarded_bytes: self.discarded_bytes.saturating_sub(before.discarded_bytes),
            syncs: self.syncs.saturating_sub(before.syncs),
            sync_ms: self.sync_ms.saturating_sub(before.sync_ms),
            busy_ms: self.busy_ms.saturating_sub(before.busy_ms),
        }
    }
}

/// Parses the counters in a device's `stat` file; `None` if it has fewer than the 17 counters that
/// Linux 5.5 has.
fn parse(stat: &str) -> Option<DeviceCounters> {
    let numbers = stat.split_whitespace().map(|word| word.parse().ok());
    let numbers = numbers.collect::<Option<Vec<u64>>>()?;
    let &[
        reads,
        _reads_merged,
        read_sectors,
        read_ms,
        writes,
        _writes_merged,
        written_sectors,
        write_ms,
        _in_flight,
        busy_ms,
        _queued_ms,
        discards,
        _discards_merged,
        discarded_sectors,
        _discard_ms,
        syncs,
        sync_ms,
        ..,
    ] = numbers.as_slice()
    else {
        return None;
    };
    Some(DeviceCounters {
        reads,
        read_bytes: read_sectors.checked_mul(SECTOR_BYTES)?,
        read_ms,
        writes,
        written_bytes: written_sectors.checked_mul(SECTOR_BYTES)?,
        write_ms,
        discards,
        discarded_bytes: discarded_sectors.checked_mul(SECTOR_BYTES)?,
        syncs,
        sync_ms,
        busy_ms,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counters_of_a_disk_are_parsed() {
        let stat = "   60925    11229  4675794    22692    28265    23987  4170904    10946        0     \
                    7988    34361     9083       50   752968      584     3968      137\n";
        let expected = DeviceCounters {
            reads: 60925,
            read_bytes: 4_675_794 * 512,
            read_ms: 22692,
            writes: 28265,
            written_bytes: 4_170_904 * 512,
            write_ms: 10946,
            discards: 9083,
            discarded_bytes: 752_968 * 512,
            syncs: 3968,
            sync_ms: 137,
            busy_ms: 7988,
        };
        assert_eq!(parse(stat), Some(expected));
        assert_eq!(parse(&stat.replace("3968      137", "")), None, "a kernel before 5.5");
        assert_eq!(parse(&stat.replace("60925", "-1")), None);
    }

    proptest! {
        #[test]
        fn parser_never_panics(text in "\\PC*", numbers in any::<[u64; 17]>()) {
            let _ = parse(&text);
            let _ = parse(&numbers.map(|number| number.to_string()).join(" "));
        }
    }
}
