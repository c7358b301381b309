//! A setting of the kernel, old and new, and how to undo the change. Pure.

use crate::units::Bytes;

/// One change of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    /// What it is called by: `vm.dirty_bytes`, `sda: read_ahead_kb`.
    pub(super) name: String,
    /// The kernel's file.
    pub(super) path: String,
    /// What it is now, as it stands in the file.
    pub(super) old: String,
    pub(super) new: String,
    /// How to come back, where writing the old value does not: another file, and its value.
    pub(super) back: Option<(String, String)>,
}

impl Setting {
    /// `vm.dirty_bytes` or `vm.dirty_background_bytes`. Where a ratio counts before, that is what
    /// brings it back: the kernel sets it to 0, and takes no 0 for the bytes.
    pub(super) fn dirty(name: &str, old_bytes: u64, old_percent: u64, new_bytes: u64) -> Self {
        let path = |kind| format!("/proc/sys/vm/{name}_{kind}");
        Self {
            name: format!("vm.{name}_bytes"),
            path: path("bytes"),
            old: old_bytes.to_string(),
            new: new_bytes.to_string(),
            back: (old_bytes == 0).then(|| (path("ratio"), old_percent.to_string())),
        }
    }

    /// A file of a disk's request queue.
    pub(super) fn queue(disk: &str, file: &str, old: &str, new: &str) -> Self {
        Self {
            name: format!("{disk}: {file}"),
            path: format!("/sys/block/{disk}/queue/{file}"),
            old: old.to_owned(),
            new: new.to_owned(),
            back: None,
        }
    }

    /// What it was and what it becomes, for people.
    pub(super) fn told(&self) -> String {
        let told = |value: &str| match value.parse() {
            Ok(bytes) if self.name.ends_with("_bytes") => format!("{value} ({})", Bytes(bytes)),
            _ => value.to_owned(),
        };
        let was = match &self.back {
            Some((_, percent)) => format!("{percent} % (by ratio)"),
            None => told(&self.old),
        };
        format!("{}: {was} → {}", self.name, told(&self.new))
    }

    /// The line of a shell that undoes it.
    pub(super) fn undo(&self) -> String {
        match &self.back {
            Some((path, value)) => format!("echo {value} > {path}"),
            None => format!("echo {} > {}", self.old, self.path),
        }
    }

    /// The line that sets it at each start of the machine, and the file for such lines.
    pub(super) fn keep(&self) -> (&'static str, String) {
        const SYSCTL: &str = "/etc/sysctl.d/90-haul.conf";
        const UDEV: &str = "/etc/udev/rules.d/90-haul.rules";
        let Some((disk, file)) = self.name.split_once(": ") else {
            return (SYSCTL, format!("{} = {}", self.name, self.new));
        };
        let rule = format!(
            "ACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"{disk}\", \
             ATTR{{queue/{file}}}=\"{}\"",
            self.new
        );
        (UDEV, rule)
    }
}

/// A script that undoes all, the last first. To run it twice, or after only some of them were
/// set, does no harm.
pub(super) fn undo_script(settings: &[Setting]) -> String {
    let lines: Vec<_> = settings.iter().rev().map(Setting::undo).collect();
    format!("#!/bin/sh\n# Undoes what haul tune --apply set.\nset -e\n{}\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_knows_its_way_back() {
        let by_ratio = Setting::dirty("dirty", 0, 20, 1 << 30);
        assert_eq!(by_ratio.undo(), "echo 20 > /proc/sys/vm/dirty_ratio");
        assert_eq!(by_ratio.told(), "vm.dirty_bytes: 20 % (by ratio) → 1073741824 (1 GiB)");
        let by_bytes = Setting::dirty("dirty_background", 4096, 0, 1 << 20);
        assert_eq!(by_bytes.undo(), "echo 4096 > /proc/sys/vm/dirty_background_bytes");
        assert!(by_bytes.told().ends_with(": 4096 (4 KiB) → 1048576 (1 MiB)"));
        let scheduler = Setting::queue("sda", "scheduler", "none", "mq-deadline");
        assert_eq!(scheduler.told(), "sda: scheduler: none → mq-deadline");
        assert_eq!(scheduler.undo(), "echo none > /sys/block/sda/queue/scheduler");
        assert_eq!(
            undo_script(&[by_ratio, scheduler]),
            "#!/bin/sh\n# Undoes what haul tune --apply set.\nset -e\n\
             echo none > /sys/block/sda/queue/scheduler\necho 20 > /proc/sys/vm/dirty_ratio\n"
        );
    }

    #[test]
    fn a_change_can_be_kept() {
        let (file, line) = Setting::dirty("dirty", 0, 20, 5).keep();
        assert!(file.starts_with("/etc/sysctl.d/"), "{file}");
        assert_eq!(line, "vm.dirty_bytes = 5");
        let (file, line) = Setting::queue("sda", "read_ahead_kb", "128", "1024").keep();
        assert!(file.starts_with("/etc/udev/rules.d/"), "{file}");
        assert!(line.contains("KERNEL==\"sda\", ATTR{queue/read_ahead_kb}=\"1024\""), "{line}");
    }
}
