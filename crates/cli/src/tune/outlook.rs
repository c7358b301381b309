//! What will happen to whoever writes, in plain sentences. Pure.

use haul_disk::{Amount, DirtyLimits, Machine};

use super::case::{Case, Place};
use super::words::{centisecs, range, seconds};
use crate::units::Bytes;

/// The memory, in one sentence.
pub(super) fn memory(machine: &Machine) -> String {
    let memory = &machine.memory;
    let (Some(dirtyable), Some(total)) = (memory.dirtyable_bytes(), memory.total_bytes) else {
        return "how much memory there is cannot be found out".to_owned();
    };
    let now = memory.dirty_bytes.unwrap_or(0).saturating_add(memory.under_way_bytes.unwrap_or(0));
    let swap = match memory.swap_bytes {
        Some(0) => "; no swap".to_owned(),
        Some(bytes) => format!("; {} of swap", Bytes(bytes)),
        None => String::new(),
    };
    format!(
        "{} of {} is available to writers: what is free or holds files, less the kernel's reserve. \
         {} of it is dirty now{swap}",
        Bytes(dirtyable),
        Bytes(total),
        Bytes(now),
    )
}

/// What happens to writers, a sentence each.
pub(super) fn writers(case: &Case) -> Vec<String> {
    let Some(limits) = case.machine.limits() else {
        return vec!["when the kernel writes, and who waits, cannot be found out".to_owned()];
    };
    let mut sentences = machine(&case.machine, limits);
    sentences.extend(group(&case.machine));
    for place in &case.places {
        sentences.extend(stall(place, limits));
        sentences.extend(place.notes.iter().map(|note| format!("As to that rate: {note}.")));
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
            "After {} of dirty data{} the kernel starts to write in the background{}.",
            Bytes(limits.background_bytes),
            share(settings.background(), "vm.dirty_background_bytes"),
            periodic(machine),
        ),
        format!(
            "From {} on it slows down whoever writes, and after {}{} they wait until something has \
             been written.",
            Bytes(limits.slow_from_bytes()),
            Bytes(limits.limit_bytes),
            share(settings.limit(), "vm.dirty_bytes"),
        ),
    ]
}

/// What is written by its age, and so what a power cut takes.
fn periodic(machine: &Machine) -> String {
    let settings = &machine.settings;
    let (Some(expire), Some(every)) = (settings.expire_centisecs, settings.writeback_centisecs)
    else {
        return String::new();
    };
    if every == 0 {
        return ", and before that it writes nothing that nobody syncs: a power cut takes it, however \
                old it is"
            .to_owned();
    }
    format!(
        "; what is {} old it writes anyway, every {}. A power cut takes what nobody synced in the \
         last {}, and what was not written by then",
        centisecs(expire),
        centisecs(every),
        centisecs(expire.saturating_add(every)),
    )
}

fn group(machine: &Machine) -> Option<String> {
    let (group, limits) = (machine.group.as_ref()?, machine.group_limits()?);
    Some(format!(
        "This process is in the control group {}, which may use {}: there the kernel starts to \
         write after {}, and writers wait after {}. So does a command started here; ask again in the \
         group of a service.",
        group.group,
        Bytes(group.limit_bytes?),
        Bytes(limits.background_bytes),
        Bytes(limits.limit_bytes),
    ))
}

fn stall(place: &Place, limits: DirtyLimits) -> Option<String> {
    place.facts.device.as_ref()?;
    let share = place.facts.share.percent_max.filter(|percent| *percent < 100);
    let bytes = share.map_or(limits.limit_bytes, |percent| limits.limit_bytes / 100 * percent);
    let (least, most) = place.rate.times(bytes);
    let time = if least == most { seconds(most) } else { range(least, most) };
    Some(format!(
        "On {}, at {}, {} take {time}: up to that long waits an fsync that comes behind it.",
        place.name(),
        place.rate,
        Bytes(bytes),
    ))
}

#[cfg(test)]
mod tests {
    use haul_disk::{GroupMemory, Memory};

    use super::*;
    use crate::tune::case::tests::{GIB, MIB, case, machine as usual, mount, place};
    use crate::tune::rate::{Known, Rate};

    #[test]
    fn a_machine_is_told_in_plain_words() {
        let told = DirtyLimits { background_bytes: GIB, limit_bytes: 2 * GIB };
        let mut case = case(vec![place(mount("/"))]);
        case.machine.told = Some(told);
        assert_eq!(
            writers(&case).join("\n"),
            "After 1 GiB of dirty data (10 % of the 10 GiB available) the kernel starts to write in \
             the background; what is 30 s old it writes anyway, every 5 s. A power cut takes what \
             nobody synced in the last 35 s, and what was not written by then.\n\
             From 1.5 GiB on it slows down whoever writes, and after 2 GiB (20 % of the 10 GiB \
             available) they wait until something has been written.\n\
             On / (ext4 on sda1), at 410 MiB/s (measured), 2 GiB take 5.0 s: up to that long waits \
             an fsync that comes behind it."
        );
        assert_eq!(
            memory(&case.machine),
            "10 GiB of 16 GiB is available to writers: what is free or holds files, less the \
             kernel's reserve. 0 B of it is dirty now; no swap"
        );
    }

    #[test]
    fn bytes_shares_and_groups_are_told_as_such() {
        let mut facts = mount("/");
        facts.share.percent_max = Some(10);
        let rate = Rate { low: 80 * MIB, high: 250 * MIB, known: Known::ByKind("a spinning disk") };
        let mut case = case(vec![Place { rate, ..place(facts) }]);
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
        let told = writers(&case);
        for (number, words) in [
            (0, "After 100 MiB of dirty data (vm.dirty_background_bytes) the kernel"),
            (0, "nothing that nobody syncs: a power cut takes it, however old it is."),
            (
                1,
                "From 550 MiB on it slows down whoever writes, and after 1000 MiB (vm.dirty_bytes)",
            ),
            (2, "the control group /job, which may use 1 GiB: there the kernel starts to write"),
            (
                3,
                "at 80 MiB to 250 MiB/s (expected of a spinning disk), 100 MiB take 0.4 s to 1.2 s",
            ),
        ] {
            assert!(told[number].contains(words), "{words}\n{told:#?}");
        }
    }

    #[test]
    fn what_cannot_be_found_out_is_said() {
        let mut case = case(vec![]);
        case.machine.memory = Memory::default();
        assert!(writers(&case)[0].contains("cannot be found out"));
        assert!(memory(&case.machine).contains("cannot be found out"));
        assert_eq!(usual().memory.dirtyable_bytes(), Some(10 * GIB));
    }
}
