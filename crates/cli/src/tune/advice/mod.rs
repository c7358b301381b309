//! What is found, what to do about it, and why. Pure functions from numbers.

mod dirty;
mod disk;
mod group;
mod mount;
mod times;

use super::case::Case;
use super::setting::Setting;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// Data may be lost.
    Danger,
    /// Somebody waits longer than need be.
    Slow,
    /// Good to know.
    Note,
}

/// What can be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Safe at run time: `--apply` sets them.
    Settings(Vec<Setting>),
    /// A command for people, who know what else it touches.
    ByHand(String),
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    /// A name of it, for programs.
    pub(super) what: &'static str,
    /// What it is about: a mount, a disk, or `memory`.
    pub(super) about: String,
    pub(super) weight: Weight,
    pub(super) text: String,
    /// What to do about it, where something can be done.
    pub(super) remedy: Option<Remedy>,
    /// Where that is written.
    pub(super) source: Option<&'static str>,
}

impl Finding {
    fn new(what: &'static str, about: &str, weight: Weight, text: impl Into<String>) -> Self {
        let (about, text) = (about.to_owned(), text.into());
        Self { what, about, weight, text, remedy: None, source: None }
    }

    fn set(mut self, settings: Vec<Setting>) -> Self {
        self.remedy = (!settings.is_empty()).then_some(Remedy::Settings(settings));
        self
    }

    fn by_hand(mut self, command: impl Into<String>) -> Self {
        self.remedy = Some(Remedy::ByHand(command.into()));
        self
    }

    fn source(mut self, source: &'static str) -> Self {
        self.source = Some(source);
        self
    }
}

/// Everything that is found, what matters most first.
pub(super) fn advise(case: &Case) -> Vec<Finding> {
    let mut findings = dirty::findings(case);
    findings.extend(times::findings(&case.machine.settings));
    findings.extend(group::findings(case));
    let mut disks: Vec<&str> = Vec::new();
    for place in &case.places {
        findings.extend(mount::findings(place));
        findings.extend(disk::readahead(place));
        for facts in &place.facts.disks {
            // Several file systems may be on one disk.
            if !disks.contains(&facts.name.as_str()) {
                disks.push(&facts.name);
                findings.extend(disk::findings(facts, place.rotation_of(facts)));
            }
        }
    }
    let odd = |odd: &haul_disk::Oddity| {
        let text = format!("{} {}", odd.path, odd.what);
        Finding::new("not understood", "kernel", Weight::Note, text)
    };
    findings.extend(case.oddities.iter().map(odd));
    // Two partitions of a disk have one readahead.
    let mut seen: Vec<Finding> = Vec::new();
    for finding in findings {
        if !seen.contains(&finding) {
            seen.push(finding);
        }
    }
    seen.sort_by_key(|finding| finding.weight);
    seen
}

/// What `--apply` would set, in this order.
pub(super) fn settings(findings: &[Finding]) -> Vec<Setting> {
    let mut all: Vec<Setting> = Vec::new();
    for finding in findings {
        if let Some(Remedy::Settings(settings)) = &finding.remedy {
            for setting in settings {
                if !all.iter().any(|known| known.path == setting.path) {
                    all.push(setting.clone());
                }
            }
        }
    }
    all
}

#[cfg(test)]
pub(super) mod tests {
    use haul_disk::Oddity;

    use super::*;
    use crate::tune::case::tests::{case, machine, mount, place};

    /// The names of the findings, and what `--apply` would set for them.
    pub(crate) fn names(findings: &[Finding]) -> Vec<&'static str> {
        findings.iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn a_machine_in_good_order_gets_no_advice() {
        assert_eq!(advise(&case(vec![place(mount("/"))])), []);
    }

    #[test]
    fn two_file_systems_of_one_disk_are_told_of_it_once() {
        let mut facts = mount("/");
        facts.queue.readahead_bytes = Some(0);
        facts.disks[0].queue.scheduler = Some("none".to_owned());
        let mut home = place(facts.clone());
        home.facts.mount.as_mut().unwrap().point = "/srv".to_owned();
        let findings = advise(&case(vec![place(facts), home]));
        assert_eq!(names(&findings), ["readahead", "scheduler"]);
        let paths: Vec<_> = settings(&findings).into_iter().map(|one| one.path).collect();
        assert_eq!(paths, ["/sys/block/sda/queue/read_ahead_kb", "/sys/block/sda/queue/scheduler"]);
    }

    #[test]
    fn dangers_come_first_and_oddities_are_told() {
        let mut facts = mount("/");
        facts.options.push("nobarrier".to_owned());
        facts.options.push("nodelalloc".to_owned());
        let mut case = case(vec![place(facts)]);
        let odd = Oddity { path: "/proc/meminfo".to_owned(), what: "is not there".to_owned() };
        case.oddities.push(odd);
        let findings = advise(&case);
        assert_eq!(names(&findings), ["no barrier", "nodelalloc", "not understood"]);
        assert_eq!(findings[2].text, "/proc/meminfo is not there");
        assert_eq!(settings(&findings), [], "mounts are for people");
    }

    #[test]
    fn nothing_known_is_nothing_advised() {
        let mut bare = case(vec![]);
        bare.machine.memory = haul_disk::Memory::default();
        bare.machine.settings = haul_disk::DirtySettings::default();
        assert_eq!(advise(&bare), []);
        assert_ne!(machine().limits(), None);
    }
}
