//! How old data gets before it is written. Pure.

use haul_disk::DirtySettings;

use super::{Finding, Weight};

const VM: &str = "Linux, Documentation/admin-guide/sysctl/vm.rst";
/// Data that gets older than this is thought to be safe by those who wrote it.
const EXPIRE_CENTISECS_MAX: u64 = 6000;

pub(super) fn findings(settings: &DirtySettings) -> Vec<Finding> {
    let mut findings = Vec::new();
    let about = |what, weight, text: String| Finding::new(what, "memory", weight, text).source(VM);
    if settings.writeback_centisecs == Some(0) {
        let text = "the kernel never looks for old dirty data: what nobody syncs stays in memory \
                    until there is enough of it for the background writer, for days perhaps, and \
                    is lost with the power";
        let finding = about("no periodic writer", Weight::Danger, text.to_owned());
        findings.push(finding.by_hand("sysctl -w vm.dirty_writeback_centisecs=500"));
    }
    if let Some(expire) = settings.expire_centisecs.filter(|expire| *expire > EXPIRE_CENTISECS_MAX)
    {
        let text = format!(
            "what nobody syncs is written when it is {} s old, and lost with the power before",
            expire / 100
        );
        let finding = about("late writer", Weight::Note, text);
        findings.push(finding.by_hand("sysctl -w vm.dirty_expire_centisecs=3000"));
    }
    if settings.laptop_mode.is_some_and(|mode| mode > 0) {
        let text = "laptop mode is on: what is dirty is written when something is read, to let the \
                    disk sleep; writers meet the limits later, and all at once";
        let finding = about("laptop mode", Weight::Note, text.to_owned());
        findings.push(finding.by_hand("sysctl -w vm.laptop_mode=0"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::advice::tests::names;
    use crate::tune::case::tests::machine;

    #[test]
    fn writers_that_come_late_or_never_are_told_of() {
        for (writeback, expire, laptop, expected) in [
            (Some(500), Some(3000), Some(0), &[][..]),
            (Some(0), Some(3000), Some(0), &["no periodic writer"]),
            (Some(1), Some(6001), None, &["late writer"]),
            (Some(500), Some(6000), Some(5), &["laptop mode"]),
            (None, None, None, &[]),
        ] {
            let settings = DirtySettings {
                writeback_centisecs: writeback,
                expire_centisecs: expire,
                laptop_mode: laptop,
                ..machine().settings
            };
            assert_eq!(names(&findings(&settings)), expected);
        }
    }
}
