//! Reports settings by which unsynced data stays in memory for long.

use haul_disk::DirtySettings;

use crate::finding::{Finding, Severity};

const VM: &str = "Linux, Documentation/admin-guide/sysctl/vm.rst";
/// The maximum acceptable `vm.dirty_expire_centisecs`, in hundredths of a second (60 s): users
/// expect older data to be on disk.
const EXPIRE_CENTISECS_MAX: u64 = 6000;

pub(crate) fn findings(settings: &DirtySettings) -> Vec<Finding> {
    let mut findings = Vec::new();
    let about =
        |what, severity, text: String| Finding::new(what, "memory", severity, text).source(VM);
    if settings.writeback_centisecs == Some(0) {
        let text = "periodic writeback is disabled: unsynced data stays in memory until background \
                    writeback starts, possibly for days, and is lost in a power failure";
        let finding = about("no periodic writer", Severity::Danger, text.to_owned());
        findings.push(finding.by_hand("sysctl -w vm.dirty_writeback_centisecs=500"));
    }
    if let Some(expire) = settings.expire_centisecs.filter(|expire| *expire > EXPIRE_CENTISECS_MAX)
    {
        let text = format!(
            "unsynced data is written when it is {} s old, and lost in a power failure before",
            expire / 100
        );
        let finding = about("late writer", Severity::Note, text);
        findings.push(finding.by_hand("sysctl -w vm.dirty_expire_centisecs=3000"));
    }
    if settings.laptop_mode.is_some_and(|mode| mode > 0) {
        let text = "laptop mode: dirty data is written when the disk is read, to let it sleep; \
                    writers reach the limits later, all at once";
        let finding = about("laptop mode", Severity::Note, text.to_owned());
        findings.push(finding.by_hand("sysctl -w vm.laptop_mode=0"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::tests::names;
    use crate::case::tests::machine;

    #[test]
    fn late_and_disabled_periodic_writeback_is_found() {
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
