//! Derives findings and their remedies from the facts of a [`Case`].

mod dirty;
mod disk;
mod group;
mod mount;
mod times;

use crate::case::Case;
use crate::finding::{Finding, Remedy, Severity};
use crate::setting::Setting;

/// Returns the findings for a machine, without duplicates, the most severe first.
pub fn advise(case: &Case) -> Vec<Finding> {
    let mut findings = dirty::findings(case);
    findings.extend(times::findings(&case.machine.settings));
    findings.extend(group::findings(case));
    let mut disks: Vec<&str> = Vec::new();
    for place in &case.targets {
        findings.extend(mount::findings(place));
        findings.extend(disk::readahead(place));
        for facts in &place.facts.disks {
            // Several file systems may be on one disk, which is examined only once.
            if !disks.contains(&facts.name.as_str()) {
                disks.push(&facts.name);
                findings.extend(disk::findings(facts, place.rotation_of(facts)));
            }
        }
    }
    let odd = |odd: &haul_disk::Anomaly| {
        let text = format!("{} {}", odd.path, odd.what);
        Finding::new("not understood", "kernel", Severity::Note, text)
    };
    findings.extend(case.oddities.iter().map(odd));
    // Several partitions of one disk share the readahead of the disk, so a finding may occur
    // several times.
    let mut seen: Vec<Finding> = Vec::new();
    for finding in findings {
        if !seen.contains(&finding) {
            seen.push(finding);
        }
    }
    seen.sort_by_key(|finding| finding.severity);
    seen
}

/// Returns the settings that `haul tune --apply` changes, in the order of the changes; at most one
/// change per setting.
pub fn settings(findings: &[Finding]) -> Vec<Setting> {
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
pub(crate) mod tests {
    use haul_disk::Anomaly;

    use super::*;
    use crate::case::tests::{case, machine, mount, place};

    /// Returns the names of findings.
    pub(crate) fn names(findings: &[Finding]) -> Vec<&'static str> {
        findings.iter().map(|finding| finding.name).collect()
    }

    #[test]
    fn well_configured_machine_has_no_findings() {
        assert_eq!(advise(&case(vec![place(mount("/"))])), []);
    }

    #[test]
    fn findings_of_a_shared_disk_are_reported_once() {
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
    fn dangers_come_first_and_oddities_are_reported() {
        let mut facts = mount("/");
        facts.options.push("nobarrier".to_owned());
        facts.options.push("nodelalloc".to_owned());
        let mut case = case(vec![place(facts)]);
        let odd = Anomaly { path: "/proc/meminfo".to_owned(), what: "is not there".to_owned() };
        case.oddities.push(odd);
        let findings = advise(&case);
        assert_eq!(names(&findings), ["no barrier", "nodelalloc", "not understood"]);
        assert_eq!(findings[2].text, "/proc/meminfo is not there");
        assert_eq!(settings(&findings), [], "mounts are left to the administrator");
    }

    #[test]
    fn unknown_facts_have_no_findings() {
        let mut bare = case(vec![]);
        bare.machine.memory = haul_disk::Memory::default();
        bare.machine.settings = haul_disk::DirtySettings::default();
        assert_eq!(advise(&bare), []);
        assert_ne!(machine().limits(), None);
    }
}
