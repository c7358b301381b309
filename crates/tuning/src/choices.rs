//! Lists the methods by which Haul reads, writes and syncs on a given disk, with reasons.

use haul_append_log::{SyncMethod, WriteStrategy};
use haul_disk::{DirectIo, Storage};
use haul_measure::{Measured, Method, Rotation};
use haul_units::Bytes;

/// A method or value that Haul chooses depending on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The name in JSON, such as `log_files`.
    pub name: &'static str,
    /// The name in text for users, such as `log files`.
    pub title: &'static str,
    /// The chosen method or value, as text.
    pub choice: String,
    /// The reason for the choice, as text.
    pub reason: String,
}

/// Returns all choices for a disk. Without a measurement, the choice of the read depth is
/// "unknown", and that of durable writes names the candidates if there are several.
#[must_use]
pub fn choices(storage: &Storage, measured: Option<&Measured>) -> Vec<Choice> {
    let ways = WriteStrategy::of(storage);
    vec![
        segments(&ways),
        durable_writes(&ways, measured),
        order(storage, measured),
        depth(measured),
        direct(storage),
    ]
}

fn segments(ways: &WriteStrategy) -> Choice {
    let choice = match (ways.prefills, ways.recycles) {
        (true, true) => "zero-filled before use, recycled afterwards",
        (true, false) => "zero-filled before use",
        (false, true) => "recycled after use",
        (false, false) => "appended to, removed after use",
    };
    Choice {
        name: "log_files",
        title: "log files",
        choice: choice.to_owned(),
        reason: ways.segments_reason.clone(),
    }
}

fn durable_writes(ways: &WriteStrategy, measured: Option<&Measured>) -> Choice {
    let (name, title) = ("durable_writes", "durable writes");
    let candidates = ways.candidates();
    let medians: Vec<_> = measured
        .into_iter()
        .flat_map(|measured| &measured.writes)
        .filter_map(|row| {
            let method = method_of(row.method).filter(|method| candidates.contains(method))?;
            let us = row.sample.latencies.percentile_us(50.0)?;
            Some((method, whole(us)))
        })
        .collect();
    if let Some((method, reason)) = SyncMethod::best(&medians) {
        return Choice { name, title, choice: method.to_string(), reason };
    }
    match candidates {
        [only] => {
            let reason = "direct writes need direct I/O and blocks that are overwritten in place";
            Choice { name, title, choice: only.to_string(), reason: reason.to_owned() }
        }
        several => {
            let names: Vec<_> = several.iter().map(ToString::to_string).collect();
            Choice {
                name,
                title,
                choice: format!("the fastest of {}", names.join(", ")),
                reason: "measured when a log is opened; --measure shows it now".to_owned(),
            }
        }
    }
}

/// Returns the sync method of the append log to which `method` corresponds; `None` if the log does
/// not use it.
fn method_of(method: Method) -> Option<SyncMethod> {
    match method {
        Method::Fdatasync => Some(SyncMethod::Buffered),
        Method::DirectFdatasync => Some(SyncMethod::Direct),
        Method::DirectWriteDsync => Some(SyncMethod::DirectDsync),
        Method::Dsync | Method::DirectDsync | Method::Growing | Method::WrittenOut => None,
    }
}

fn order(storage: &Storage, measured: Option<&Measured>) -> Choice {
    const BY_BLOCK: &str = "in block order, one reader";
    const BY_INODE: &str = "by directory and inode, several readers";
    let rotation = measured.map_or(Rotation::Unknown, |measured| measured.rotation);
    let (choice, reason) = match (storage.queue.rotational, rotation) {
        (Some(true), Rotation::Unknown) => (
            "in block order by one reader, if the disk rotates",
            "the device reports itself as rotational; sum and dups measure whether it is, cache \
             warm does not",
        ),
        (Some(true), Rotation::Believable) => {
            (BY_BLOCK, "the device reports itself as rotational, and its latencies agree")
        }
        (Some(true), Rotation::Denied) => (
            BY_INODE,
            "the device reports itself as rotational, which its latencies deny; cache warm needs \
             --disk-kind solid, because it does not measure",
        ),
        (Some(false), _) => (BY_INODE, "the device reports itself as non-rotational"),
        (None, _) => (BY_INODE, "the device does not report whether it is rotational"),
    };
    Choice {
        name: "reading_files",
        title: "read order",
        choice: choice.to_owned(),
        reason: reason.to_owned(),
    }
}

fn depth(measured: Option<&Measured>) -> Choice {
    let (name, title) = ("reads_at_a_time", "read depth");
    let rate = |depth: usize| {
        let row = measured?.reads.iter().find(|row| row.depth == depth)?;
        row.sample.per_second()
    };
    let known = measured.and_then(|measured| measured.depth).and_then(|depth| {
        let one = rate(1)?;
        Some((depth, rate(depth)? / one))
    });
    match known {
        Some((1, _)) => Choice {
            name,
            title,
            choice: "1".to_owned(),
            reason: "higher depths are less than 10 % faster".to_owned(),
        },
        Some((depth, gain)) => Choice {
            name,
            title,
            choice: depth.to_string(),
            reason: format!("{gain:.1} times as fast as depth 1; higher ones gain less than 10 %"),
        },
        None => Choice {
            name,
            title,
            choice: "unknown".to_owned(),
            reason: match measured {
                Some(_) => "cannot be measured without direct I/O".to_owned(),
                None => "use --measure".to_owned(),
            },
        },
    }
}

fn direct(storage: &Storage) -> Choice {
    let unit = Bytes(storage.write_unit_bytes());
    let (choice, reason) = match storage.direct_io {
        Some(DirectIo::Aligned { memory_bytes, offset_bytes }) => (
            format!("big objects, in units of {unit}"),
            format!("offsets must be multiples of {offset_bytes} B, addresses of {memory_bytes} B"),
        ),
        Some(DirectIo::Unsupported) => {
            ("none".to_owned(), "the file system does not support direct I/O".to_owned())
        }
        None => (
            format!("if possible, in units of {unit}"),
            "not reported by the kernel; tried at run time".to_owned(),
        ),
    };
    Choice { name: "past_the_cache", title: "direct I/O", choice, reason }
}

#[expect(clippy::cast_possible_truncation, reason = "a time, of at most a year")]
#[expect(clippy::cast_sign_loss, reason = "a time is not negative")]
fn whole(us: f64) -> u64 {
    us.round() as u64
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use haul_disk::{FileSystem, Queue};
    use haul_measure::Latencies;
    use haul_measure::{DepthRead, MethodWrite, Sample};

    use super::*;

    /// Returns the storage of a disk with all features.
    pub(crate) fn storage(file_system: FileSystem) -> Storage {
        Storage {
            path: "/srv".into(),
            file_system,
            mount: None,
            device: None,
            queue: Queue { rotational: Some(false), ..Queue::default() },
            journal: Some(true),
            copy_on_write: Some(false),
            direct_io: Some(DirectIo::Aligned { memory_bytes: 4, offset_bytes: 512 }),
        }
    }

    /// Returns a sample of `count` requests of `us` each.
    fn sample(count: u32, us: u64) -> Sample {
        let mut latencies = Latencies::default();
        for _ in 0..count {
            latencies.record(Duration::from_micros(us));
        }
        Sample { latencies, time: Duration::from_secs(1) }
    }

    /// Returns measured results of `writes`, as pairs of method and median in microseconds, and of
    /// `reads`, as pairs of depth and rate.
    pub(crate) fn measured(writes: &[(Method, u64)], reads: &[(usize, u32)]) -> Measured {
        let write = |(method, us): &(Method, u64)| MethodWrite {
            method: *method,
            sample: sample(10, *us),
            why_not: None,
        };
        let read =
            |(depth, rate): &(usize, u32)| DepthRead { depth: *depth, sample: sample(*rate, 100) };
        Measured {
            writes: writes.iter().map(write).collect(),
            reads: reads.iter().map(read).collect(),
            read_bytes_per_s: None,
            write_bytes_per_s: None,
            depth: reads.last().map(|(depth, _)| *depth),
            rotation: Rotation::Unknown,
            notes: Vec::new(),
        }
    }

    fn choice(name: &str, storage: &Storage, measured: Option<&Measured>) -> Choice {
        choices(storage, measured).into_iter().find(|choice| choice.name == name).unwrap()
    }

    #[test]
    fn log_uses_the_fastest_of_its_own_sync_methods() {
        let ext4 = storage(FileSystem::Ext4);
        let of = |writes: &[(Method, u64)]| {
            choice("durable_writes", &ext4, Some(&measured(writes, &[]))).choice
        };
        let all = |buffered, direct, dsync| {
            [
                (Method::Fdatasync, buffered),
                (Method::DirectFdatasync, direct),
                (Method::DirectWriteDsync, dsync),
                // These methods are not sync methods of the log.
                (Method::Dsync, 1),
                (Method::Growing, 1),
                (Method::WrittenOut, 1),
            ]
        };
        assert_eq!(of(&all(100, 99, 98)), "buffered + fdatasync");
        assert_eq!(of(&all(100, 50, 98)), "direct + fdatasync");
        assert_eq!(of(&all(100, 99, 50)), "direct + per-write DSYNC");
        let unmeasured = choice("durable_writes", &ext4, None);
        assert!(unmeasured.choice.starts_with("the fastest of buffered"), "{unmeasured:?}");

        let btrfs = Storage { copy_on_write: Some(true), ..storage(FileSystem::Btrfs) };
        let fast = measured(&all(100, 50, 50), &[]);
        assert_eq!(choice("durable_writes", &btrfs, Some(&fast)).choice, "buffered + fdatasync");
        assert_eq!(choice("durable_writes", &btrfs, None).choice, "buffered + fdatasync");
        assert!(choice("log_files", &btrfs, None).reason.contains("copy-on-write"));
        assert!(choice("log_files", &ext4, None).choice.contains("recycled"));
    }

    #[test]
    fn read_order_follows_the_kind_of_disk_that_commands_use() {
        let claiming = |rotational| Storage {
            queue: Queue { rotational, ..Queue::default() },
            ..storage(FileSystem::Xfs)
        };
        let (block, inode) = ("in block order, one reader", "by directory and inode, several");
        for (claim, rotation, order, reason) in [
            (Some(true), None, "in block order by one reader, if", "sum and dups measure"),
            (Some(true), Some(Rotation::Unknown), "in block order by one reader, if", "measure"),
            (Some(true), Some(Rotation::Believable), block, "its latencies agree"),
            (Some(true), Some(Rotation::Denied), inode, "cache warm needs --disk-kind solid"),
            (Some(false), None, inode, "non-rotational"),
            (None, None, inode, "does not report"),
        ] {
            let measured = rotation.map(|rotation| Measured { rotation, ..measured(&[], &[]) });
            let choice = choice("reading_files", &claiming(claim), measured.as_ref());
            assert!(
                choice.choice.starts_with(order) && choice.reason.contains(reason),
                "{choice:?}"
            );
        }
    }

    #[test]
    fn read_depth_is_reported_with_its_gain() {
        let xfs = storage(FileSystem::Xfs);
        let of = |reads: Option<&[(usize, u32)]>| {
            let measured = reads.map(|reads| measured(&[], reads));
            let Choice { choice, reason, .. } = choice("reads_at_a_time", &xfs, measured.as_ref());
            format!("{choice}: {reason}")
        };
        assert!(of(Some(&[(1, 100), (8, 450)])).starts_with("8: 4.5 times as fast"));
        assert!(of(Some(&[(1, 100)])).starts_with("1: higher depths"));
        assert!(of(Some(&[])).starts_with("unknown: cannot be measured"));
        assert!(of(None).starts_with("unknown: use --measure"));
    }

    #[test]
    fn direct_io_is_reported_with_its_unit() {
        let with = |direct_io| Storage { direct_io, ..storage(FileSystem::Ext4) };
        let of = |direct_io| choice("past_the_cache", &with(direct_io), None).choice;
        let wide = DirectIo::Aligned { memory_bytes: 4, offset_bytes: 65536 };
        assert_eq!(of(Some(wide)), "big objects, in units of 64 KiB");
        assert_eq!(of(Some(DirectIo::Unsupported)), "none");
        assert_eq!(of(None), "if possible, in units of 4 KiB");
    }
}
