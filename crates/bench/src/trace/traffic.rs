//! Divides the write requests of a trace into data, journal, metadata and writes of other tasks.
//! Performs no I/O.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use haul_disk::{FileSystem, Storage};

use super::parse::{Event, Kind, Trace};

const SECTOR_BYTES: u64 = 512;

/// The rule by which writes to a file system's journal are recognised in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Journalling {
    /// On ext4, only the thread `jbd2/<device>-<inode>` writes to the journal.
    Thread,
    /// On xfs, the syncing task writes the log as synchronous metadata (`WSM`), while `xfsaild`
    /// writes metadata in place, asynchronously (`WM`).
    SyncMetadata,
    /// The file system has no journal, or one whose writes cannot be recognised.
    Unknown,
}

impl Journalling {
    /// Returns the rule for a storage's file system.
    pub(crate) fn of(storage: &Storage) -> Self {
        match storage.file_system {
            FileSystem::Ext4 => Self::Thread,
            FileSystem::Xfs => Self::SyncMetadata,
            _ => Self::Unknown,
        }
    }
}

/// A number of write requests, and the sum of their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) writes: u64,
    pub(crate) bytes: u64,
}

/// The write requests to a device. Each request with data is counted in exactly one of the first
/// four fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// Writes by the measured thread, except journal and metadata.
    pub(crate) data: Share,
    /// Writes to the journal of the file system.
    pub(crate) journal: Share,
    /// Metadata outside the journal, by any task.
    pub(crate) metadata: Share,
    /// Data written by kernel workers and other programs.
    pub(crate) others: Share,
    /// Flushes of the device's write cache.
    pub(crate) syncs: u64,
    /// Writes that bypassed the write cache (FUA).
    pub(crate) fua: u64,
}

impl AddAssign for Share {
    fn add_assign(&mut self, other: Self) {
        self.writes += other.writes;
        self.bytes += other.bytes;
    }
}

impl Traffic {
    /// Sums up the requests of `trace`; `own` is the identifier of the measured thread.
    ///
    /// A kernel worker often sends a request on behalf of a task, so a request is attributed to the
    /// task that most recently queued its first sector.
    pub(crate) fn of(trace: &Trace, own: u32, journalling: Journalling) -> Self {
        let mut traffic = Self::default();
        let mut queued: BTreeMap<u64, &Event> = BTreeMap::new();
        for event in &trace.events {
            match event.kind {
                Kind::Queued if event.flags.is_write && event.sectors > 0 => {
                    queued.insert(event.sector, event);
                }
                Kind::Queued => {}
                Kind::Issued if event.flags.sync_cache && event.sectors == 0 => {
                    traffic.syncs += 1;
                }
                Kind::Issued if event.flags.is_write && event.sectors > 0 => {
                    let covers = |(from, by): &(&u64, &&Event)| *from + by.sectors > event.sector;
                    let by = queued.range(..=event.sector).next_back().filter(covers);
                    let by = by.map_or(event, |(_, by)| by);
                    traffic.fua += u64::from(event.flags.fua);
                    let bytes = event.sectors.saturating_mul(SECTOR_BYTES);
                    *traffic.account(by, own, journalling) += Share { writes: 1, bytes };
                }
                Kind::Issued => {}
            }
        }
        traffic
    }

    fn account(&mut self, by: &Event, own: u32, journalling: Journalling) -> &mut Share {
        let is_journal = match journalling {
            Journalling::Thread => by.comm.starts_with("jbd2/"),
            Journalling::SyncMetadata => by.flags.metadata && by.flags.sync,
            Journalling::Unknown => false,
        };
        if is_journal {
            &mut self.journal
        } else if by.flags.metadata {
            &mut self.metadata
        } else if by.pid == own {
            &mut self.data
        } else {
            &mut self.others
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::parse::Flags;

    const OWN: u32 = 7;

    fn queued(comm: &str, pid: u32, rwbs: &str, sector: u64, sectors: u64) -> Event {
        let (kind, flags) = (Kind::Queued, Flags::parse(rwbs).unwrap());
        Event { kind, comm: comm.to_owned(), pid, flags, sector, sectors }
    }

    /// Returns a request sent by a kernel worker.
    fn issued(rwbs: &str, sector: u64, sectors: u64) -> Event {
        Event { kind: Kind::Issued, ..queued("kworker/0:0H", 10, rwbs, sector, sectors) }
    }

    fn share(writes: u64, bytes: u64) -> Share {
        Share { writes, bytes }
    }

    fn of(events: Vec<Event>, journalling: Journalling) -> Traffic {
        Traffic::of(&Trace { events, lost: 0, marked_by: None }, OWN, journalling)
    }

    #[test]
    fn xfs_log_writes_of_the_syncing_task_are_journal() {
        let events = vec![
            queued("haul", OWN, "WS", 80, 8),
            issued("WS", 80, 8),
            queued("haul", OWN, "FWFSM", 5000, 3),
            issued("FF", 0, 0),
            issued("WFSM", 5000, 3),
            queued("xfsaild/loop0", 4, "WM", 16, 8),
            issued("WM", 16, 8),
        ];
        let expected = Traffic {
            data: share(1, 4096),
            journal: share(1, 1536),
            metadata: share(1, 4096),
            syncs: 1,
            fua: 1,
            ..Traffic::default()
        };
        assert_eq!(of(events, Journalling::SyncMetadata), expected);
    }

    #[test]
    fn parts_of_a_split_write_keep_their_task_and_jbd2_writes_the_journal() {
        let events = vec![
            queued("haul", OWN, "W", 0, 2048),
            issued("W", 0, 1024),
            issued("W", 1024, 1024),
            queued("kworker/u8:1", 20, "W", 4096, 8),
            issued("W", 4096, 8),
            issued("W", 9000, 8), // Queued before the trace began.
            queued("haul", OWN, "FWS", 0, 0),
            issued("FF", 0, 0),
            issued("R", 0, 8),
            queued("jbd2/vda-8", 3, "FWFSM", 1 << 20, 8),
            issued("WSM", 1 << 20, 8),
        ];
        let unknown = of(events.clone(), Journalling::Unknown);
        assert_eq!((unknown.journal, unknown.metadata), (share(0, 0), share(1, 4096)));
        let traffic = of(events, Journalling::Thread);
        assert_eq!((traffic.journal, traffic.metadata), (share(1, 4096), share(0, 0)));
        assert_eq!((traffic.data, traffic.others), (share(2, 1 << 20), share(2, 8192)));
        assert_eq!(traffic.syncs, 1);
    }
}
