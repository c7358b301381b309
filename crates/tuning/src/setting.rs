//! Describes changes of kernel settings, with the commands that undo them.

use haul_units::Bytes;

/// A change of one kernel setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The printable name, such as `vm.dirty_bytes` or `sda: read_ahead_kb`.
    pub name: String,
    /// The path of the setting's file in `/proc` or `/sys`.
    pub path: String,
    /// The current value, as read from the file.
    pub old: String,
    /// The recommended value.
    pub new: String,
    /// The path of another file and the value to write to that file, if writing `old` to `path`
    /// would not restore the old state.
    pub restore: Option<(String, String)>,
}

impl Setting {
    /// Returns a change of `vm.dirty_bytes` or `vm.dirty_background_bytes`; `name` is `dirty` or
    /// `dirty_background`. If `old_bytes` is 0, the ratio `old_percent` is in effect. The undo
    /// command then sets this ratio, because the kernel rejects a limit of 0 bytes.
    pub fn dirty(name: &str, old_bytes: u64, old_percent: u64, new_bytes: u64) -> Self {
        let path = |kind| format!("/proc/sys/vm/{name}_{kind}");
        Self {
            name: format!("vm.{name}_bytes"),
            path: path("bytes"),
            old: old_bytes.to_string(),
            new: new_bytes.to_string(),
            restore: (old_bytes == 0).then(|| (path("ratio"), old_percent.to_string())),
        }
    }

    /// Returns a change of the request queue attribute `file` of a disk, a file in
    /// `/sys/block/<disk>/queue`.
    pub fn queue(disk: &str, file: &str, old: &str, new: &str) -> Self {
        Self {
            name: format!("{disk}: {file}"),
            path: format!("/sys/block/{disk}/queue/{file}"),
            old: old.to_owned(),
            new: new.to_owned(),
            restore: None,
        }
    }

    /// Describes the change in the form `name: old → new`.
    pub fn describe(&self) -> String {
        let text = |value: &str| match value.parse() {
            Ok(bytes) if self.name.ends_with("_bytes") => format!("{value} ({})", Bytes(bytes)),
            _ => value.to_owned(),
        };
        let old = match &self.restore {
            Some((_, percent)) => format!("{percent} % (by ratio)"),
            None => text(&self.old),
        };
        format!("{}: {old} → {}", self.name, text(&self.new))
    }

    /// Returns the shell command that undoes the change.
    pub fn undo(&self) -> String {
        match &self.restore {
            Some((path, value)) => format!("echo {value} > {path}"),
            None => format!("echo {} > {}", self.old, self.path),
        }
    }
}

/// Returns a shell script that undoes all changes in reverse order. The script may be run
/// repeatedly, and also if only some of the changes were made.
pub fn undo_script(settings: &[Setting]) -> String {
    let lines: Vec<_> = settings.iter().rev().map(Setting::undo).collect();
    format!("#!/bin/sh\n# Undoes the changes of haul tune --apply.\nset -e\n{}\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_is_described_and_undone() {
        let by_ratio = Setting::dirty("dirty", 0, 20, 1 << 30);
        assert_eq!(by_ratio.undo(), "echo 20 > /proc/sys/vm/dirty_ratio");
        assert_eq!(by_ratio.describe(), "vm.dirty_bytes: 20 % (by ratio) → 1073741824 (1 GiB)");
        let by_bytes = Setting::dirty("dirty_background", 4096, 0, 1 << 20);
        assert_eq!(by_bytes.undo(), "echo 4096 > /proc/sys/vm/dirty_background_bytes");
        assert!(by_bytes.describe().ends_with(": 4096 (4 KiB) → 1048576 (1 MiB)"));
        let scheduler = Setting::queue("sda", "scheduler", "none", "mq-deadline");
        assert_eq!(scheduler.describe(), "sda: scheduler: none → mq-deadline");
        assert_eq!(scheduler.undo(), "echo none > /sys/block/sda/queue/scheduler");
        assert_eq!(
            undo_script(&[by_ratio, scheduler]),
            "#!/bin/sh\n# Undoes the changes of haul tune --apply.\nset -e\n\
             echo none > /sys/block/sda/queue/scheduler\necho 20 > /proc/sys/vm/dirty_ratio\n"
        );
    }
}
