//! Compares the limits of dirty memory with the write rates of the disks, and recommends limits.

use haul_disk::{Amount, DirtyLimits};

use crate::case::{Case, Target};
use crate::durations::range;
use crate::finding::{Finding, Severity};
use crate::rate::Rate;
use crate::setting::Setting;
use haul_units::Bytes;

const VM: &str = "Linux, Documentation/admin-guide/sysctl/vm.rst";
const STALLS: &str = "J. Corbet, The pernicious USB-stick stall problem, LWN.net, 2013";

/// The maximum acceptable time to write all dirty data, in seconds.
const STALL_S_MAX: u64 = 10;
/// The time to write all dirty data with the recommended limits, in seconds. Lower limits would
/// throttle bursts of writes needlessly.
const STALL_S_GOOD: u64 = 5;
/// The factor by which the recommended limit exceeds the recommended background limit.
const BACKGROUND_PART: u64 = 4;
/// The minimum acceptable time to write all dirty data, in milliseconds. With less dirty data, the
/// disk idles while writers are blocked.
const STALL_MS_MIN: u64 = 100;
/// The unit of recommended limits in bytes: each limit is a multiple of this number.
const STEP_BYTES: u64 = 16 << 20;
/// The maximum limit as a percentage of dirtyable memory. Above it, the kernel finds too few clean
/// pages to reclaim.
const PERCENT_MAX: u64 = 50;
/// The amount of dirtyable memory, in bytes, below which a finding says that only more memory
/// helps.
const TINY_BYTES: u64 = 256 << 20;

/// Returns the recommended limits for a disk that writes `bytes_per_s`. The limit is the amount
/// that the disk writes in five seconds, and background writeback starts at a quarter of this
/// amount.
fn good_limits(bytes_per_s: u64, dirtyable_bytes: u64) -> DirtyLimits {
    let whole = |bytes: u64| (bytes / STEP_BYTES).max(1) * STEP_BYTES;
    // The limit is at most 20 % of dirtyable memory, the kernel's default.
    let most = dirtyable_bytes / 5;
    let limit = whole(bytes_per_s.saturating_mul(STALL_S_GOOD).min(most));
    DirtyLimits {
        background_bytes: whole(limit / BACKGROUND_PART).min(limit / 2),
        limit_bytes: limit,
    }
}

pub(crate) fn findings(case: &Case) -> Vec<Finding> {
    let Some(limits) = case.machine.limits() else { return Vec::new() };
    let mut findings = Vec::new();
    findings.extend(order(case));
    findings.extend(case.slowest().and_then(|place| time(case, place, limits)));
    findings.extend(memory(case, limits));
    findings.extend(swap(case));
    findings
}

/// Returns a finding if the slowest disk takes too long to write all dirty data, or so little time
/// that the limits are too low.
fn time(case: &Case, place: &Target, limits: DirtyLimits) -> Option<Finding> {
    let rate = &place.rate;
    let (least, most) = rate.times(limits.limit_bytes);
    let about = place.point();
    let backlog = format!(
        "up to {} may be dirty, which takes {} to write at {rate}",
        Bytes(limits.limit_bytes),
        range(least, most)
    );
    if least.as_secs() >= STALL_S_MAX {
        let text = format!(
            "{backlog}: an fsync, and other writers, may wait that long. Limits in bytes reduce it \
             to {STALL_S_GOOD} s; a larger backlog helps writers only until a program waits for \
             the disk"
        );
        let finding = Finding::new("long stalls", about, Severity::Slow, text).source(STALLS);
        return Some(finding.set(sizes(case, rate, limits.limit_bytes)));
    }
    if most.as_secs() >= STALL_S_MAX {
        let text = format!(
            "an fsync may wait {} behind dirty data: use --measure for a better estimate",
            range(least, most)
        );
        return Some(Finding::new("perhaps long stalls", about, Severity::Note, text));
    }
    let too_little = most.as_millis() < u128::from(STALL_MS_MIN)
        && limits.limit_bytes < case.machine.memory.dirtyable_bytes()? / 50;
    too_little.then(|| {
        let text = format!(
            "{backlog}: writers are throttled before the disk is busy, and data rewritten soon \
             after is written twice"
        );
        let finding = Finding::new("small limit", about, Severity::Slow, text).source(STALLS);
        finding.set(sizes(case, rate, u64::MAX))
    })
}

/// Returns the changes of both limits to the recommended values; none if the recommended limit is
/// not below `most_bytes`. A limit that already has the recommended value is not changed.
fn sizes(case: &Case, rate: &Rate, most_bytes: u64) -> Vec<Setting> {
    let settings = &case.machine.settings;
    let known = || {
        let good = good_limits(rate.high, case.machine.memory.dirtyable_bytes()?);
        let old = (settings.background_bytes?, settings.limit_bytes?);
        let percent = (settings.background_percent?, settings.limit_percent?);
        (good.limit_bytes < most_bytes).then(|| {
            let background =
                Setting::dirty("dirty_background", old.0, percent.0, good.background_bytes);
            let limit = Setting::dirty("dirty", old.1, percent.1, good.limit_bytes);
            // The first change must not move the background limit above the limit. If `most_bytes`
            // is `u64::MAX`, both limits are raised, so the limit comes first; otherwise both are
            // lowered, and the background limit comes first.
            if most_bytes == u64::MAX { vec![limit, background] } else { vec![background, limit] }
        })
    };
    let changes = known().unwrap_or_default();
    changes.into_iter().filter(|setting| setting.old != setting.new).collect()
}

/// Returns a finding if the background limit is not below the limit.
fn order(case: &Case) -> Option<Finding> {
    let settings = &case.machine.settings;
    let (background, limit) = (settings.background()?, settings.limit()?);
    let (is_behind, half) = match (background, limit) {
        (Amount::Percent(background), Amount::Percent(limit)) => {
            (background >= limit, format!("vm.dirty_background_ratio={}", limit / 2))
        }
        (Amount::Bytes(background), Amount::Bytes(limit)) => {
            (background >= limit, format!("vm.dirty_background_bytes={}", limit / 2))
        }
        (background, limit) => {
            let dirtyable = case.machine.memory.dirtyable_bytes()?;
            let bytes = |amount| match amount {
                Amount::Bytes(bytes) => bytes,
                Amount::Percent(percent) => dirtyable / 100 * percent,
            };
            let limit = bytes(limit);
            (bytes(background) >= limit, format!("vm.dirty_background_bytes={}", limit / 2))
        }
    };
    is_behind.then(|| {
        let text = "background writeback is set to start only when writers are blocked; the kernel \
                    uses half the limit instead";
        Finding::new("limits in the wrong order", "memory", Severity::Note, text)
            .by_hand(format!("sysctl -w {half}"))
            .source(VM)
    })
}

fn memory(case: &Case, limits: DirtyLimits) -> Option<Finding> {
    let dirtyable = case.machine.memory.dirtyable_bytes()?;
    let about = |what, severity, text| Finding::new(what, "memory", severity, text);
    if dirtyable < TINY_BYTES {
        let text = format!(
            "only {} may be dirty: writers are throttled early and often. More memory helps, settings \
             do not",
            Bytes(limits.limit_bytes)
        );
        return Some(about("little memory", Severity::Note, text));
    }
    if limits.limit_bytes / PERCENT_MAX >= dirtyable / 100 {
        let without = case.machine.memory.swap_bytes == Some(0);
        let text = format!(
            "{} of {} may be dirty: memory allocations then wait for the disk{}",
            Bytes(limits.limit_bytes),
            Bytes(dirtyable),
            if without { ", in particular as there is no swap" } else { "" },
        );
        let by_hand = "sysctl -w vm.dirty_background_ratio=10 vm.dirty_ratio=20";
        return Some(about("much of memory", Severity::Slow, text).by_hand(by_hand).source(VM));
    }
    None
}

/// Returns a finding if swap space is on the disk of an examined file system.
fn swap(case: &Case) -> Option<Finding> {
    let disks = || case.targets.iter().flat_map(|place| &place.facts.disks);
    let on_disk = |swap: &&String| {
        let name = swap.strip_prefix("/dev/").unwrap_or_default();
        // The name of a partition begins with the name of its disk: `sda3` is on `sda`, `nvme0n1p3`
        // is on `nvme0n1`.
        disks().any(|disk| name.starts_with(&disk.name))
    };
    let swap = case.machine.swaps.iter().find(on_disk)?;
    let text =
        format!("{swap} is swap space on a disk that is written to: page-ins wait behind writes");
    Some(Finding::new("swap on the same disk", "memory", Severity::Note, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::settings;
    use crate::advice::tests::names;
    use crate::case::tests::{GIB, MIB, case, mount, place};
    use crate::rate::RateSource;

    /// Returns the findings for a disk whose write rate is between `low` and `high`.
    fn found(low: u64, high: u64, change: impl Fn(&mut Case)) -> Vec<Finding> {
        let mut place = place(mount("/"));
        place.rate = Rate { low, high, known: RateSource::Given };
        let mut case = case(vec![place]);
        change(&mut case);
        findings(&case)
    }

    fn sets(findings: &[Finding]) -> Vec<(String, String)> {
        settings(findings).into_iter().map(|one| (one.name, one.new)).collect()
    }

    #[test]
    fn slow_disks_get_limits_in_bytes() {
        // The dirty limit of the test machine is 2 GiB.
        for (low, high, what, limit) in [
            (410 * MIB, 410 * MIB, None, None),
            (210 * MIB, 210 * MIB, None, None),
            (200 * MIB, 200 * MIB, Some("long stalls"), Some(992 * MIB)),
            (20 * MIB, 20 * MIB, Some("long stalls"), Some(96 * MIB)),
            (MIB, MIB, Some("long stalls"), Some(16 * MIB)),
            // Writing takes too long even at the upper rate, from which the limit is computed.
            (20 * MIB, 100 * MIB, Some("long stalls"), Some(496 * MIB)),
            (50 * MIB, 2000 * MIB, Some("perhaps long stalls"), None),
            (6000 * MIB, 6000 * MIB, None, None),
        ] {
            let found = found(low, high, |_| ());
            assert_eq!(names(&found), Vec::from_iter(what), "{low} {high}");
            let sets = sets(&found);
            assert_eq!(sets.last().map(|set| set.1.clone()), limit.map(|bytes| bytes.to_string()));
            if let (Some(limit), Some(first)) = (limit, sets.first()) {
                assert_eq!(first.0, "vm.dirty_background_bytes", "the smaller one first");
                let background: u64 = first.1.parse().unwrap();
                assert!(background <= limit / 2 && background >= limit / 8, "{background}");
            }
        }
    }

    #[test]
    fn limits_in_bytes_are_restored_in_bytes() {
        let found = found(20 * MIB, 20 * MIB, |case| {
            case.machine.settings.limit_bytes = Some(GIB);
            case.machine.settings.limit_percent = Some(0);
        });
        let undo: Vec<_> = settings(&found).iter().map(Setting::undo).collect();
        assert_eq!(
            undo,
            [
                "echo 10 > /proc/sys/vm/dirty_background_ratio",
                "echo 1073741824 > /proc/sys/vm/dirty_bytes"
            ]
        );
    }

    #[test]
    fn recommended_limits_need_no_change() {
        let rate = 20 * MIB;
        let good = good_limits(rate, 10 * GIB);
        let found = found(rate, rate, |case| {
            case.machine.settings.background_bytes = Some(good.background_bytes);
            case.machine.settings.limit_bytes = Some(good.limit_bytes);
        });
        assert_eq!(found, []);
    }

    #[test]
    fn too_small_limit_is_raised() {
        let small = |case: &mut Case| {
            case.machine.settings.background_bytes = Some(MIB);
            case.machine.settings.limit_bytes = Some(4 * MIB);
        };
        let found = found(400 * MIB, 400 * MIB, small);
        assert_eq!(names(&found), ["small limit"]);
        let sets = sets(&found);
        assert_eq!(sets[0], ("vm.dirty_bytes".to_owned(), (2000 * MIB).to_string()));
        assert_eq!(sets[1].0, "vm.dirty_background_bytes");
    }

    #[test]
    fn limits_in_the_wrong_order_are_found() {
        for (background, limit, hand) in [
            ((20, 0), (20, 0), Some("vm.dirty_background_ratio=10")),
            ((30, 0), (20, 0), Some("vm.dirty_background_ratio=10")),
            ((0, GIB), (0, GIB), Some("vm.dirty_background_bytes=536870912")),
            ((0, 3 * GIB), (20, 0), Some("vm.dirty_background_bytes=107374182")),
            ((19, 0), (20, 0), None),
            ((0, MIB), (0, GIB), None),
        ] {
            let found = found(400 * MIB, 400 * MIB, |case| {
                let settings = &mut case.machine.settings;
                settings.background_percent = Some(background.0);
                settings.background_bytes = Some(background.1);
                settings.limit_percent = Some(limit.0);
                settings.limit_bytes = Some(limit.1);
            });
            let is_found = names(&found).contains(&"limits in the wrong order");
            assert_eq!(is_found, hand.is_some(), "{background:?} {limit:?}: {found:?}");
            if let Some(hand) = hand {
                assert!(format!("{found:?}").contains(hand), "{found:?}");
            }
        }
    }

    #[test]
    fn too_high_ratio_and_little_memory_are_found() {
        let much = found(2000 * MIB, 2000 * MIB, |case| {
            case.machine.settings.limit_percent = Some(60);
        });
        assert_eq!(names(&much), ["much of memory"]);
        assert!(much[0].text.contains("no swap"), "{}", much[0].text);
        let tiny = found(2000 * MIB, 2000 * MIB, |case| {
            case.machine.memory.free_bytes = Some(0);
            case.machine.memory.file_bytes = Some(64 * MIB);
        });
        assert_eq!(names(&tiny), ["little memory"]);
    }

    #[test]
    fn swap_on_the_same_disk_is_found() {
        for (swaps, expected) in
            [(&["/dev/sda3"][..], true), (&["/swapfile", "/dev/zram0"], false), (&[], false)]
        {
            let found = found(400 * MIB, 400 * MIB, |case| {
                case.machine.swaps = swaps.iter().map(|swap| (*swap).to_owned()).collect();
            });
            assert_eq!(names(&found).contains(&"swap on the same disk"), expected, "{swaps:?}");
        }
    }
}
