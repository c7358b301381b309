//! Predicts in sentences when the kernel writes back dirty data, and how long writers wait.

use haul_disk::{Amount, DirtyLimits, Machine};
use haul_units::Bytes;

use crate::case::{Case, Target};
use crate::durations::{centisecs, range, seconds};

/// Describes the memory available for dirty data, in one sentence.
pub fn memory(machine: &Machine) -> String {
    let memory = &machine.memory;
    let (Some(dirtyable), Some(total)) = (memory.dirtyable_bytes(), memory.total_bytes) else {
        return "the size of the memory is unknown".to_owned();
    };
    let now = memory.dirty_bytes.unwrap_or(0).saturating_add(memory.writeback_bytes.unwrap_or(0));
    let swap = match memory.swap_bytes {
        Some(0) => "; no swap".to_owned(),
        Some(bytes) => format!("; {} of swap", Bytes(bytes)),
        None => String::new(),
    };
    format!(
        "{} of {} is available for dirty data (free memory and page cache, less the kernel's \
         reserve); {} of it is dirty now{swap}",
        Bytes(dirtyable),
        Bytes(total),
        Bytes(now),
    )
}

/// Describes when writeback starts, when the kernel throttles writers, and how long an fsync may
/// wait on each file system. Each element contains one or more whole sentences.
pub fn writers(case: &Case) -> Vec<String> {
    let Some(limits) = case.machine.limits() else {
        return vec!["the dirty limits are unknown".to_owned()];
    };
    let mut sentences = machine(&case.machine, limits);
    sentences.extend(group(&case.machine));
    for place in &case.targets {
        sentences.extend(stall(place, limits));
        sentences.extend(place.notes.iter().map(|note| format!("Note on this rate: {note}.")));
    }
    sentences
}

fn machine(machine: &Machine, limits: DirtyLimits) -> Vec<String> {
    let settings = &machine.settings;
    let available = machine.memory.dirtyable_bytes();
    let share = |amount: Option<Amount>, name: &str| match (amount, available) {
        (Some(Amount::Percent(percent)), Some(available)) => {
            format!(" ({percent} % of the {} available)", Bytes(available))
        }
        (Some(Amount::Percent(percent)), None) => format!(" ({percent} %)"),
        (Some(Amount::Bytes(_)), _) => format!(" ({name})"),
        (None, _) => String::new(),
    };
    vec![
        format!(
            "Background writeback starts at {} of dirty data{}{}.",
            Bytes(limits.background_bytes),
            share(settings.background(), "vm.dirty_background_bytes"),
            periodic(machine),
        ),
        format!(
            "Writers are throttled from {} on, and blocked at {}{} until data has been written.",
            Bytes(limits.freerun_ceiling_bytes()),
            Bytes(limits.limit_bytes),
            share(settings.limit(), "vm.dirty_bytes"),
        ),
    ]
}

/// Describes periodic writeback, and which unsynced data a power failure loses.
fn periodic(machine: &Machine) -> String {
    let settings = &machine.settings;
    let (Some(expire), Some(every)) = (settings.expire_centisecs, settings.writeback_centisecs)
    else {
        return String::new();
    };
    if every == 0 {
        return ", and there is no periodic writeback: a power failure loses unsynced data, however \
                old"
            .to_owned();
    }
    format!(
        "; data older than {} is written every {}. A power failure loses unsynced data of the last \
         {}, and older data not yet written",
        centisecs(expire),
        centisecs(every),
        centisecs(expire.saturating_add(every)),
    )
}

fn group(machine: &Machine) -> Option<String> {
    let (group, limits) = (machine.group.as_ref()?, machine.group_limits()?);
    Some(format!(
        "This process is in the control group {}, limited to {}: in it, background writeback \
         starts at {}, and writers are blocked at {}. Commands started here are in it, too; run \
         haul tune in the group of a service for its limits.",
        group.group,
        Bytes(group.limit_bytes?),
        Bytes(limits.background_bytes),
        Bytes(limits.limit_bytes),
    ))
}

fn stall(place: &Target, limits: DirtyLimits) -> Option<String> {
    place.facts.device.as_ref()?;
    let share = place.facts.share.percent_max.filter(|percent| *percent < 100);
    let bytes = share.map_or(limits.limit_bytes, |percent| limits.limit_bytes / 100 * percent);
    let (least, most) = place.rate.times(bytes);
    let time = if least == most { seconds(most) } else { range(least, most) };
    Some(format!(
        "On {}, at {}, writing {} takes {time}: an fsync behind it may wait that long.",
        place.name(),
        place.rate,
        Bytes(bytes),
    ))
}

#[cfg(test)]
mod tests {
    use haul_disk::{GroupMemory, Memory};

    use super::*;
    use crate::case::tests::{GIB, MIB, case, machine as usual, mount, place};
    use crate::rate::{Rate, RateSource};

    #[test]
    fn writeback_is_explained_in_sentences() {
        let limits = DirtyLimits { background_bytes: GIB, limit_bytes: 2 * GIB };
        let mut case = case(vec![place(mount("/"))]);
        case.machine.kernel_limits = Some(limits);
        assert_eq!(
            writers(&case).join("\n"),
            "Background writeback starts at 1 GiB of dirty data (10 % of the 10 GiB available); \
             data older than 30 s is written every 5 s. A power failure loses unsynced data of \
             the last 35 s, and older data not yet written.\n\
             Writers are throttled from 1.5 GiB on, and blocked at 2 GiB (20 % of the 10 GiB \
             available) until data has been written.\n\
             On / (ext4 on sda1), at 410 MiB/s (measured), writing 2 GiB takes 5.0 s: an fsync \
             behind it may wait that long."
        );
        assert_eq!(
            memory(&case.machine),
            "10 GiB of 16 GiB is available for dirty data (free memory and page cache, less the \
             kernel's reserve); 0 B of it is dirty now; no swap"
        );
    }

    #[test]
    fn limits_in_bytes_device_shares_and_groups_are_explained() {
        let mut facts = mount("/");
        facts.share.percent_max = Some(10);
        let rate =
            Rate { low: 80 * MIB, high: 250 * MIB, known: RateSource::ByKind("a rotational disk") };
        let mut case = case(vec![Target { rate, ..place(facts) }]);
        case.machine.settings.background_bytes = Some(100 * MIB);
        case.machine.settings.limit_bytes = Some(1000 * MIB);
        case.machine.settings.writeback_centisecs = Some(0);
        case.machine.group = Some(GroupMemory {
            group: "/job".to_owned(),
            is_version_1: false,
            limit_bytes: Some(GIB),
            room_bytes: Some(GIB),
            file_bytes: Some(0),
            dirty_bytes: None,
        });
        let sentences = writers(&case);
        for (number, words) in [
            (0, "starts at 100 MiB of dirty data (vm.dirty_background_bytes)"),
            (0, "no periodic writeback: a power failure loses unsynced data, however old."),
            (1, "throttled from 550 MiB on, and blocked at 1000 MiB (vm.dirty_bytes)"),
            (2, "the control group /job, limited to 1 GiB: in it, background writeback starts"),
            (
                3,
                "at 80 MiB to 250 MiB/s (typical of a rotational disk), writing 100 MiB takes \
                 0.4 s to 1.2 s",
            ),
        ] {
            assert!(sentences[number].contains(words), "{words}\n{sentences:#?}");
        }
    }

    #[test]
    fn unknown_facts_are_reported_as_unknown() {
        let mut case = case(vec![]);
        case.machine.memory = Memory::default();
        assert!(writers(&case)[0].contains("unknown"));
        assert!(memory(&case.machine).contains("unknown"));
        assert_eq!(usual().memory.dirtyable_bytes(), Some(10 * GIB));
    }
}
