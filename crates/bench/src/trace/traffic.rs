//! A trace, added up: what was written, and on whose account. Pure.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use haul_disk::{FileSystem, Storage};

use super::parse::{Event, Kind, Trace};

const SECTOR_BYTES: u64 = 512;

/// How the journal of a file system is told from everything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Journalling {
    /// ext4: its journal has a thread, `jbd2/<device>-<inode>`, which alone writes to it.
    ByThread,
    /// xfs: whoever syncs writes the log, as metadata somebody waits for (`WSM`). Metadata in its
    /// place is written by `xfsaild`, and nobody waits (`WM`).
    WaitedMetadata,
    /// It has none, or one we cannot tell.
    Unknown,
}

impl Journalling {
    /// How that of a storage is told.
    pub(crate) fn of(storage: &Storage) -> Self {
        match storage.file_system {
            FileSystem::Ext4 => Self::ByThread,
            FileSystem::Xfs => Self::WaitedMetadata,
            _ => Self::Unknown,
        }
    }
}

/// Requests and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) writes: u64,
    pub(crate) bytes: u64,
}

/// The write requests of a device. Each stands in exactly one of the first four.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// What our own thread wrote, but for what follows.
    pub(crate) data: Share,
    /// The journal's.
    pub(crate) journal: Share,
    /// Metadata outside the journal, whoever wrote it.
    pub(crate) metadata: Share,
    /// Everybody else's: the kernel's workers, other programs.
    pub(crate) others: Share,
    /// Times the device's cache was emptied.
    pub(crate) syncs: u64,
    /// Writes that went past the cache.
    pub(crate) fua: u64,
}

impl AddAssign for Share {
    fn add_assign(&mut self, other: Self) {
        self.writes += other.writes;
        self.bytes += other.bytes;
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.data += other.data;
        self.journal += other.journal;
        self.metadata += other.metadata;
        self.others += other.others;
        self.syncs += other.syncs;
        self.fua += other.fua;
    }
}

impl Traffic {
    /// What the requests of `trace` come to; `own` is our thread.
    ///
    /// A request is often sent by a worker, so its account is that of whoever asked for its first
    /// sector last.
    pub(crate) fn of(trace: &Trace, own: u32, journalling: Journalling) -> Self {
        let mut traffic = Self::default();
        let mut asked: BTreeMap<u64, &Event> = BTreeMap::new();
        for event in &trace.events {
            match event.kind {
                Kind::Asked if event.flags.is_write && event.sectors > 0 => {
                    asked.insert(event.sector, event);
                }
                Kind::Asked => {}
                Kind::Issued if event.flags.empties_cache && event.sectors == 0 => {
                    traffic.syncs += 1;
                }
                Kind::Issued if event.flags.is_write && event.sectors > 0 => {
                    let covers = |(from, by): &(&u64, &&Event)| *from + by.sectors > event.sector;
                    let by = asked.range(..=event.sector).next_back().filter(covers);
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
            Journalling::ByThread => by.comm.starts_with("jbd2/"),
            Journalling::WaitedMetadata => by.flags.metadata && by.flags.sync,
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

    /// All writes together.
    #[cfg(test)]
    pub(crate) fn all(&self) -> Share {
        let mut all = self.data;
        all += self.journal;
        all += self.metadata;
        all += self.others;
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::parse::Flags;

    const OWN: u32 = 7;

    fn event(kind: Kind, comm: &str, pid: u32, rwbs: &str, sector: u64, sectors: u64) -> Event {
        let flags = Flags::parse(rwbs).unwrap();
        Event { kind, comm: comm.to_owned(), pid, flags, sector, sectors }
    }

    fn asked(comm: &str, pid: u32, rwbs: &str, sector: u64, sectors: u64) -> Event {
        event(Kind::Asked, comm, pid, rwbs, sector, sectors)
    }

    /// By a worker, whose name says nothing.
    fn issued(rwbs: &str, sector: u64, sectors: u64) -> Event {
        event(Kind::Issued, "kworker/0:0H", 10, rwbs, sector, sectors)
    }

    fn share(writes: u64, bytes: u64) -> Share {
        Share { writes, bytes }
    }

    fn of(events: Vec<Event>, journalling: Journalling) -> Traffic {
        Traffic::of(&Trace { events, lost: 0, marked_by: None }, OWN, journalling)
    }

    #[test]
    fn a_commit_of_ext4_is_told_from_the_data_before_it() {
        let events = vec![
            asked("haul", OWN, "WS", 100, 8),
            issued("WS", 100, 8),
            asked("jbd2/vda-8", 3, "WSM", 1000, 8),
            asked("jbd2/vda-8", 3, "WSM", 1008, 8),
            issued("WSM", 1000, 16),
            asked("jbd2/vda-8", 3, "FWFSM", 1016, 8),
            issued("FF", 0, 0),
            issued("WSM", 1016, 8),
            issued("FF", 0, 0),
        ];
        let (data, journal) = (share(1, 4096), share(2, 12288));
        let expected = Traffic { data, journal, syncs: 2, ..Traffic::default() };
        assert_eq!(of(events.clone(), Journalling::ByThread), expected);
        let unknown = of(events, Journalling::Unknown);
        assert_eq!((unknown.journal, unknown.metadata), (share(0, 0), share(2, 12288)));
        assert_eq!(unknown.all(), expected.all());
    }

    #[test]
    fn the_log_of_xfs_is_written_by_whoever_syncs() {
        let events = vec![
            asked("haul", OWN, "WS", 80, 8),
            issued("WS", 80, 8),
            asked("haul", OWN, "FWFSM", 5000, 3),
            issued("FF", 0, 0),
            issued("WFSM", 5000, 3),
            asked("xfsaild/loop0", 4, "WM", 16, 8),
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
        assert_eq!(of(events, Journalling::WaitedMetadata), expected);
    }

    #[test]
    fn others_and_pieces_of_a_large_write_are_told_apart() {
        let events = vec![
            asked("haul", OWN, "W", 0, 2048),
            issued("W", 0, 1024),
            issued("W", 1024, 1024),
            asked("kworker/u8:1", 20, "W", 4096, 8),
            issued("W", 4096, 8),
            issued("W", 9000, 8), // Asked for before the trace began.
            asked("haul", OWN, "FWS", 0, 0),
            issued("FF", 0, 0),
            issued("R", 0, 8),
        ];
        let traffic = of(events, Journalling::ByThread);
        assert_eq!((traffic.data, traffic.others), (share(2, 1 << 20), share(2, 8192)));
        assert_eq!(traffic.syncs, 1);
    }
}
