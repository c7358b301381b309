//! What Haul does on a storage, and why. Pure.

use haul_append_log::{SyncMethod, Ways};
use haul_bench::storage::{Measured, Method, Rotation};
use haul_disk::{DirectIo, Storage};

use crate::units::Bytes;

/// One thing that is decided by what the storage is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    /// What is decided, as a name for programs and people.
    pub(super) what: &'static str,
    pub(super) choice: String,
    pub(super) why: String,
}

/// Everything that is decided by what the storage is.
pub(super) fn choices(storage: &Storage, measured: Option<&Measured>) -> Vec<Choice> {
    let ways = Ways::of(storage);
    vec![
        segments(&ways),
        durable_writes(&ways, measured),
        order(storage, measured),
        depth(measured),
        direct(storage),
    ]
}

fn segments(ways: &Ways) -> Choice {
    let choice = match (ways.prefills, ways.recycles) {
        (true, true) => "filled with zeros before use, and used again",
        (true, false) => "filled with zeros before use",
        (false, true) => "used again",
        (false, false) => "appended to, and removed after use",
    };
    Choice { what: "log files", choice: choice.to_owned(), why: ways.segments_why.clone() }
}

fn durable_writes(ways: &Ways, measured: Option<&Measured>) -> Choice {
    let what = "durable writes";
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
    if let Some((method, why)) = SyncMethod::best(&medians) {
        return Choice { what, choice: method.to_string(), why };
    }
    match candidates {
        [only] => {
            let why = "nothing else is worth a try where blocks are not written in place past the \
                       page cache";
            Choice { what, choice: only.to_string(), why: why.to_owned() }
        }
        several => {
            let names: Vec<_> = several.iter().map(ToString::to_string).collect();
            let why = "all are tried when a log is opened; --measure tells now";
            Choice {
                what,
                choice: format!("the fastest of {}", names.join(", ")),
                why: why.to_owned(),
            }
        }
    }
}

/// The way of the log that is measured by this method.
fn method_of(method: Method) -> Option<SyncMethod> {
    match method {
        Method::Fdatasync => Some(SyncMethod::Buffered),
        Method::DirectFdatasync => Some(SyncMethod::Direct),
        Method::DirectWriteDsync => Some(SyncMethod::DirectDsync),
        Method::Dsync | Method::DirectDsync | Method::Growing | Method::WrittenOut => None,
    }
}

fn order(storage: &Storage, measured: Option<&Measured>) -> Choice {
    let denied = measured.is_some_and(|measured| measured.rotation == Rotation::Denied);
    let (choice, why) = match storage.queue.rotational {
        Some(true) if denied => (
            "as the blocks lie, by one reader",
            "the device says that it rotates, which its answers deny: --disk-kind solid tells \
             commands so",
        ),
        Some(true) => ("as the blocks lie, by one reader", "the device says that it rotates"),
        Some(false) => {
            ("by directory and inode, by several readers", "the device says that it has no heads")
        }
        None => ("by directory and inode, by several readers", "nothing is known of any heads"),
    };
    Choice { what: "reading files", choice: choice.to_owned(), why: why.to_owned() }
}

fn depth(measured: Option<&Measured>) -> Choice {
    let what = "reads at a time";
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
            what,
            choice: "1".to_owned(),
            why: "more at a time are not a tenth faster".to_owned(),
        },
        Some((depth, gain)) => Choice {
            what,
            choice: depth.to_string(),
            why: format!("{gain:.1} times as fast as one at a time; more are not a tenth faster"),
        },
        None => Choice {
            what,
            choice: "unknown".to_owned(),
            why: match measured {
                Some(_) => "there is no direct I/O to measure it with".to_owned(),
                None => "--measure finds out".to_owned(),
            },
        },
    }
}

fn direct(storage: &Storage) -> Choice {
    let what = "past the cache";
    let unit = Bytes(storage.write_unit_bytes());
    let (choice, why) = match storage.direct_io {
        Some(DirectIo::Aligned { memory_bytes, offset_bytes }) => (
            format!("big objects, in units of {unit}"),
            format!("offsets must be multiples of {offset_bytes} B, memory of {memory_bytes} B"),
        ),
        Some(DirectIo::Unsupported) => {
            ("nothing".to_owned(), "the file system has no direct I/O".to_owned())
        }
        None => (
            format!("what can be, in units of {unit}"),
            "it is tried: the kernel does not tell".to_owned(),
        ),
    };
    Choice { what, choice, why }
}

#[expect(clippy::cast_possible_truncation, reason = "a time, of at most a year")]
#[expect(clippy::cast_sign_loss, reason = "a time is not negative")]
fn whole(us: f64) -> u64 {
    us.round() as u64
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use haul_bench::Latencies;
    use haul_bench::storage::{DepthRead, MethodWrite, Sample};
    use haul_disk::{FileSystem, Queue};

    use super::*;

    /// A storage that has everything.
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

    /// So many, each of which took so long.
    fn sample(count: u32, us: u64) -> Sample {
        let mut latencies = Latencies::default();
        for _ in 0..count {
            latencies.record(Duration::from_micros(us));
        }
        Sample { latencies, time: Duration::from_secs(1) }
    }

    /// Figures of these writes (method, median in microseconds) and reads (depth, a second).
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

    fn choice(what: &str, storage: &Storage, measured: Option<&Measured>) -> Choice {
        choices(storage, measured).into_iter().find(|choice| choice.what == what).unwrap()
    }

    #[test]
    fn the_log_takes_the_way_that_was_measured_fastest_among_its_own() {
        let ext4 = storage(FileSystem::Ext4);
        let of = |writes: &[(Method, u64)]| {
            choice("durable writes", &ext4, Some(&measured(writes, &[]))).choice
        };
        let all = |buffered, direct, dsync| {
            [
                (Method::Fdatasync, buffered),
                (Method::DirectFdatasync, direct),
                (Method::DirectWriteDsync, dsync),
                // None of these is a way of the log.
                (Method::Dsync, 1),
                (Method::Growing, 1),
                (Method::WrittenOut, 1),
            ]
        };
        assert_eq!(of(&all(100, 99, 98)), "buffered + fdatasync");
        assert_eq!(of(&all(100, 50, 98)), "direct + fdatasync");
        assert_eq!(of(&all(100, 99, 50)), "direct + per-write DSYNC");
        let unmeasured = choice("durable writes", &ext4, None);
        assert!(unmeasured.choice.starts_with("the fastest of buffered"), "{unmeasured:?}");

        let btrfs = Storage { copy_on_write: Some(true), ..storage(FileSystem::Btrfs) };
        let fast = measured(&all(100, 50, 50), &[]);
        assert_eq!(choice("durable writes", &btrfs, Some(&fast)).choice, "buffered + fdatasync");
        assert_eq!(choice("durable writes", &btrfs, None).choice, "buffered + fdatasync");
        assert!(choice("log files", &btrfs, None).why.contains("new place"));
        assert!(choice("log files", &ext4, None).choice.contains("used again"));
    }

    #[test]
    fn the_order_of_reading_follows_the_claim_and_says_when_it_is_denied() {
        let claiming = |rotational| Storage {
            queue: Queue { rotational, ..Queue::default() },
            ..storage(FileSystem::Xfs)
        };
        let denied = Measured { rotation: Rotation::Denied, ..measured(&[], &[]) };
        for (claim, measured, order, why) in [
            (Some(true), None, "as the blocks lie", "rotates"),
            (Some(true), Some(&denied), "as the blocks lie", "deny"),
            (Some(false), None, "by directory and inode", "no heads"),
            (None, None, "by directory and inode", "nothing is known"),
        ] {
            let choice = choice("reading files", &claiming(claim), measured);
            assert!(choice.choice.starts_with(order) && choice.why.contains(why), "{choice:?}");
        }
    }

    #[test]
    fn the_depth_is_the_measured_one_with_its_gain() {
        let xfs = storage(FileSystem::Xfs);
        let of = |reads: Option<&[(usize, u32)]>| {
            let measured = reads.map(|reads| measured(&[], reads));
            let Choice { choice, why, .. } = choice("reads at a time", &xfs, measured.as_ref());
            format!("{choice}: {why}")
        };
        assert!(of(Some(&[(1, 100), (8, 450)])).starts_with("8: 4.5 times as fast"));
        assert!(of(Some(&[(1, 100)])).starts_with("1: more at a time"));
        assert!(of(Some(&[])).starts_with("unknown: there is no direct I/O"));
        assert!(of(None).starts_with("unknown: --measure"));
    }

    #[test]
    fn direct_io_is_told_in_its_units() {
        let with = |direct_io| Storage { direct_io, ..storage(FileSystem::Ext4) };
        let of = |direct_io| choice("past the cache", &with(direct_io), None).choice;
        let wide = DirectIo::Aligned { memory_bytes: 4, offset_bytes: 65536 };
        assert_eq!(of(Some(wide)), "big objects, in units of 64 KiB");
        assert_eq!(of(Some(DirectIo::Unsupported)), "nothing");
        assert_eq!(of(None), "what can be, in units of 4 KiB");
    }
}
