//! How much may be dirty, against what the disks take. Pure.

use haul_disk::{Amount, DirtyLimits};

use super::{Finding, Weight};
use crate::tune::case::{Case, Place};
use crate::tune::rate::Rate;
use crate::tune::setting::Setting;
use crate::tune::words::range;
use crate::units::Bytes;

const VM: &str = "Linux, Documentation/admin-guide/sysctl/vm.rst";
const STALLS: &str = "J. Corbet, The pernicious USB-stick stall problem, LWN.net, 2013";

/// A sync may take so long behind all that may be dirty, before it is called too much.
const STALL_S_MAX: u64 = 10;
/// What is recommended may take so long. Less, and streams that come in gusts wait for no need.
const STALL_S_GOOD: u64 = 5;
/// The background writer begins at this part of the limit.
const BACKGROUND_PART: u64 = 4;
/// With less than this time of the disk's work, it idles while writers wait.
const STALL_MS_MIN: u64 = 100;
/// What is recommended is a multiple of this.
const STEP_BYTES: u64 = 16 << 20;
/// Of what may be dirty, a limit of this many hundredths leaves too little to be reclaimed.
const PERCENT_MAX: u64 = 50;
/// A machine with less than this has other worries.
const TINY_BYTES: u64 = 256 << 20;

/// The limits, in bytes, for a disk of this rate: all of it written in five seconds, and begun
/// with when a quarter is there.
fn good_limits(bytes_per_s: u64, dirtyable_bytes: u64) -> DirtyLimits {
    let whole = |bytes: u64| (bytes / STEP_BYTES).max(1) * STEP_BYTES;
    // Never more than the kernel would allow by itself.
    let most = dirtyable_bytes / 5;
    let limit = whole(bytes_per_s.saturating_mul(STALL_S_GOOD).min(most));
    DirtyLimits {
        background_bytes: whole(limit / BACKGROUND_PART).min(limit / 2),
        limit_bytes: limit,
    }
}

pub(super) fn findings(case: &Case) -> Vec<Finding> {
    let Some(limits) = case.machine.limits() else { return Vec::new() };
    let mut findings = Vec::new();
    findings.extend(order(case));
    findings.extend(case.slowest().and_then(|place| time(case, place, limits)));
    findings.extend(memory(case, limits));
    findings.extend(swap(case));
    findings
}

/// The time that all that may be dirty takes to be written.
fn time(case: &Case, place: &Place, limits: DirtyLimits) -> Option<Finding> {
    let rate = &place.rate;
    let (least, most) = rate.times(limits.limit_bytes);
    let about = place.point();
    let told = format!(
        "{} may be dirty, {} of work for it at {rate}",
        Bytes(limits.limit_bytes),
        range(least, most)
    );
    if least.as_secs() >= STALL_S_MAX {
        let text = format!(
            "{told}: so long may a sync wait that comes behind it, and writers with it. Limits in \
             bytes keep that to {STALL_S_GOOD} s; what writers gain by more is lost as soon as \
             somebody waits for the disk"
        );
        let finding = Finding::new("long stalls", about, Weight::Slow, text).source(STALLS);
        return Some(finding.set(sizes(case, rate, limits.limit_bytes)));
    }
    if most.as_secs() >= STALL_S_MAX {
        let text = format!(
            "a sync may wait {} behind what may be dirty: --measure tells whether that is much",
            range(least, most)
        );
        return Some(Finding::new("perhaps long stalls", about, Weight::Note, text));
    }
    let too_little = most.as_millis() < u128::from(STALL_MS_MIN)
        && limits.limit_bytes < case.machine.memory.dirtyable_bytes()? / 50;
    too_little.then(|| {
        let text = format!(
            "{told}: writers are held back long before the disk has enough to do, and what is \
             written again soon is written twice"
        );
        let finding = Finding::new("small limit", about, Weight::Slow, text).source(STALLS);
        finding.set(sizes(case, rate, u64::MAX))
    })
}

/// Both limits in bytes; none that would allow more than `most_bytes`, or changes nothing.
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
            // The smaller one first on the way down, and last on the way up: they never cross.
            if most_bytes == u64::MAX { vec![limit, background] } else { vec![background, limit] }
        })
    };
    let changes = known().unwrap_or_default();
    changes.into_iter().filter(|setting| setting.old != setting.new).collect()
}

/// A background writer that is told to begin when writers wait already.
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
        let text = "the background writer is told to begin when writers wait already; the kernel \
                    has it begin at half of that instead";
        Finding::new("limits in the wrong order", "memory", Weight::Note, text)
            .by_hand(format!("sysctl -w {half}"))
            .source(VM)
    })
}

fn memory(case: &Case, limits: DirtyLimits) -> Option<Finding> {
    let dirtyable = case.machine.memory.dirtyable_bytes()?;
    let about = |what, weight, text| Finding::new(what, "memory", weight, text);
    if dirtyable < TINY_BYTES {
        let text = format!(
            "only {} may be dirty: writers wait early and often. More memory helps, settings do not",
            Bytes(limits.limit_bytes)
        );
        return Some(about("little memory", Weight::Note, text));
    }
    if limits.limit_bytes / PERCENT_MAX >= dirtyable / 100 {
        let without = case.machine.memory.swap_bytes == Some(0);
        let text = format!(
            "{} of {} may be dirty: a program that asks for memory then waits for the disk{}",
            Bytes(limits.limit_bytes),
            Bytes(dirtyable),
            if without { ", all the more as there is no swap" } else { "" },
        );
        let by_hand = "sysctl -w vm.dirty_background_ratio=10 vm.dirty_ratio=20";
        return Some(about("much of memory", Weight::Slow, text).by_hand(by_hand).source(VM));
    }
    None
}

/// Swap on a disk that is written to.
fn swap(case: &Case) -> Option<Finding> {
    let disks = || case.places.iter().flat_map(|place| &place.facts.disks);
    let on_disk = |swap: &&String| {
        let name = swap.strip_prefix("/dev/").unwrap_or_default();
        // `sda3` is on `sda`, `nvme0n1p3` on `nvme0n1`.
        disks().any(|disk| name.starts_with(&disk.name))
    };
    let swap = case.machine.swaps.iter().find(on_disk)?;
    let text = format!(
        "{swap} is swapped to, on a disk that is written to: a program whose memory is swapped in \
         waits behind what is written"
    );
    Some(Finding::new("swap on the same disk", "memory", Weight::Note, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::advice::settings;
    use crate::tune::advice::tests::names;
    use crate::tune::case::tests::{GIB, MIB, case, mount, place};
    use crate::tune::rate::Known;

    /// What is found with disks of these rates, low and high.
    fn found(low: u64, high: u64, change: impl Fn(&mut Case)) -> Vec<Finding> {
        let mut place = place(mount("/"));
        place.rate = Rate { low, high, known: Known::Given };
        let mut case = case(vec![place]);
        change(&mut case);
        findings(&case)
    }

    fn sets(findings: &[Finding]) -> Vec<(String, String)> {
        settings(findings).into_iter().map(|one| (one.name, one.new)).collect()
    }

    #[test]
    fn what_takes_a_disk_too_long_gets_limits_in_bytes() {
        // 2 GiB may be dirty.
        for (low, high, what, limit) in [
            (410 * MIB, 410 * MIB, None, None),
            (210 * MIB, 210 * MIB, None, None),
            (200 * MIB, 200 * MIB, Some("long stalls"), Some(992 * MIB)),
            (20 * MIB, 20 * MIB, Some("long stalls"), Some(96 * MIB)),
            (MIB, MIB, Some("long stalls"), Some(16 * MIB)),
            // Not even the best of it is good; the mildest limit is advised.
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
    fn what_was_said_in_bytes_comes_back_in_bytes() {
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
    fn what_is_advised_once_is_not_advised_again() {
        let rate = 20 * MIB;
        let good = good_limits(rate, 10 * GIB);
        let found = found(rate, rate, |case| {
            case.machine.settings.background_bytes = Some(good.background_bytes);
            case.machine.settings.limit_bytes = Some(good.limit_bytes);
        });
        assert_eq!(found, []);
    }

    #[test]
    fn a_limit_far_below_what_the_disk_takes_is_raised() {
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
    fn limits_in_the_wrong_order_are_told() {
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
            let is_told = names(&found).contains(&"limits in the wrong order");
            assert_eq!(is_told, hand.is_some(), "{background:?} {limit:?}: {found:?}");
            if let Some(hand) = hand {
                assert!(format!("{found:?}").contains(hand), "{found:?}");
            }
        }
    }

    #[test]
    fn too_much_and_too_little_memory_is_told() {
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
    fn swap_is_told_of_where_it_is_in_the_way() {
        for (swaps, is_told) in
            [(&["/dev/sda3"][..], true), (&["/swapfile", "/dev/zram0"], false), (&[], false)]
        {
            let found = found(400 * MIB, 400 * MIB, |case| {
                case.machine.swaps = swaps.iter().map(|swap| (*swap).to_owned()).collect();
            });
            assert_eq!(names(&found).contains(&"swap on the same disk"), is_told, "{swaps:?}");
        }
    }
}
