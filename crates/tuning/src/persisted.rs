//! Formats and parses the files that make settings persistent. Each setting has a comment with the
//! value before, so that a file is sufficient to undo its changes.

use crate::setting::Setting;

/// The file of kernel parameters, which `sysctl` reads at boot.
pub const SYSCTL_FILE: &str = "/etc/sysctl.d/90-haul.conf";

/// The file of settings of disks, which udev applies when a disk appears.
pub const UDEV_FILE: &str = "/etc/udev/rules.d/90-haul.rules";

/// The folder of kernel parameters.
const SYSCTL_FOLDER: &str = "/proc/sys/";

const HEADER: &str = "# Written by \"haul tune --persist\"; \"haul tune --revert\" removes this file and \
                      restores the values before.";

/// A setting in a file that makes it persistent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersistedSetting {
    /// The path of the setting's file in `/proc` or `/sys`.
    pub path: String,
    /// The value that the file sets.
    pub new: String,
    /// The path of the file whose value restores the state before. It is that of the setting, or, for
    /// a limit in bytes that replaced a ratio, that of the ratio.
    pub restore_path: String,
    /// The value to write to `restore_path`.
    pub restore_value: String,
}

impl From<&Setting> for PersistedSetting {
    fn from(setting: &Setting) -> Self {
        let same = || (setting.path.clone(), setting.old.clone());
        let (restore_path, restore_value) = setting.restore.clone().unwrap_or_else(same);
        Self { path: setting.path.clone(), new: setting.new.clone(), restore_path, restore_value }
    }
}

impl PersistedSetting {
    /// Returns the path of the file that contains the setting.
    pub fn file(&self) -> &'static str {
        if self.path.starts_with(SYSCTL_FOLDER) { SYSCTL_FILE } else { UDEV_FILE }
    }

    /// Returns the line that sets the value.
    pub(crate) fn line(&self) -> String {
        if let Some(parameter) = self.path.strip_prefix(SYSCTL_FOLDER) {
            return format!("{} = {}", parameter.replace('/', "."), self.new);
        }
        let (disk, attribute) = disk_attribute(&self.path).unwrap_or_default();
        format!(
            "ACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"{disk}\", \
             ATTR{{{attribute}}}=\"{}\"",
            self.new
        )
    }

    fn comment(&self) -> String {
        let Self { path, new, restore_path, restore_value } = self;
        format!("# {path} = {new}, before: {restore_path} = {restore_value}")
    }

    /// Parses a comment. Returns `None` unless both paths are those of settings that Haul changes, and
    /// both values are words.
    fn parse(comment: &str) -> Option<Self> {
        let (now, before) = comment.strip_prefix("# ")?.split_once(", before: ")?;
        let (path, new) = now.split_once(" = ")?;
        let (restore_path, restore_value) = before.split_once(" = ")?;
        let is_valid = [path, restore_path].into_iter().all(is_setting)
            && [new, restore_value].into_iter().all(is_word);
        is_valid.then(|| Self {
            path: path.to_owned(),
            new: new.to_owned(),
            restore_path: restore_path.to_owned(),
            restore_value: restore_value.to_owned(),
        })
    }
}

/// Splits the path of a disk's setting, such as `/sys/block/sda/queue/scheduler`, into the disk and
/// the attribute, such as `queue/scheduler`.
fn disk_attribute(path: &str) -> Option<(&str, &str)> {
    let (disk, attribute) = path.strip_prefix("/sys/block/")?.split_once('/')?;
    let name = attribute.strip_prefix("queue/")?;
    (is_word(disk) && is_word(name)).then_some((disk, attribute))
}

/// Returns `true` if Haul may change the setting at `path`.
fn is_setting(path: &str) -> bool {
    path.strip_prefix("/proc/sys/vm/").is_some_and(is_word) || disk_attribute(path).is_some()
}

fn is_word(text: &str) -> bool {
    let is_part = |character: char| character.is_ascii_alphanumeric() || "_-!".contains(character);
    !text.is_empty() && text.chars().all(is_part)
}

/// Returns the text of a file.
pub fn persisted_text(settings: &[PersistedSetting]) -> String {
    let lines = settings.iter().map(|one| format!("{}\n{}\n", one.comment(), one.line()));
    format!("{HEADER}\n{}", lines.collect::<String>())
}

/// Parses the text of a file. Returns `None` unless it is exactly a text that [`persisted_text`]
/// returns: then it was written by another program, or changed by hand.
pub fn parse_persisted(text: &str) -> Option<Vec<PersistedSetting>> {
    let comments = text.lines().skip(1).step_by(2);
    let settings: Vec<_> = comments.map(PersistedSetting::parse).collect::<Option<_>>()?;
    (persisted_text(&settings) == text).then_some(settings)
}

/// Adds changes to the settings of a file. A setting that the file contains gets the new value, and
/// keeps the value before the first change.
pub fn merge_persisted(
    mut settings: Vec<PersistedSetting>,
    changes: Vec<PersistedSetting>,
) -> Vec<PersistedSetting> {
    for change in changes {
        match settings.iter_mut().find(|known| known.path == change.path) {
            Some(known) => known.new = change.new,
            None => settings.push(change),
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Vec<PersistedSetting> {
        let all = [
            Setting::dirty("dirty", 0, 20, 1 << 20),
            Setting::queue("sda", "scheduler", "none", "mq-deadline"),
        ];
        all.iter().map(PersistedSetting::from).collect()
    }

    #[test]
    fn text_sets_the_values_and_has_those_before() {
        let settings = settings();
        assert_eq!(
            settings.iter().map(PersistedSetting::file).collect::<Vec<_>>(),
            [SYSCTL_FILE, UDEV_FILE]
        );
        let text = persisted_text(&settings);
        let lines: Vec<_> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "# /proc/sys/vm/dirty_bytes = 1048576, before: /proc/sys/vm/dirty_ratio = 20",
                "vm.dirty_bytes = 1048576",
                "# /sys/block/sda/queue/scheduler = mq-deadline, before: \
                 /sys/block/sda/queue/scheduler = none",
                "ACTION==\"add|change\", SUBSYSTEM==\"block\", KERNEL==\"sda\", \
                 ATTR{queue/scheduler}=\"mq-deadline\"",
            ]
        );
        assert_eq!(parse_persisted(&text), Some(settings));
    }

    #[test]
    fn changed_text_is_not_parsed() {
        let text = persisted_text(&settings());
        for (part, other) in [
            ("vm.dirty_bytes = 1048576", "vm.dirty_bytes = 1"),
            ("dirty_ratio = 20", "dirty_ratio = 20 30"),
            ("vm/dirty_ratio", "vm/../../../etc/passwd"),
            ("before: /proc/sys/vm/dirty_ratio", "before: /etc/passwd"),
            ("before: /sys/block/sda", "before: /sys/block/.."),
            ("# Written", "#Written"),
            ("ACTION", "#ACTION"),
        ] {
            assert!(text.contains(part), "{part}");
            assert_eq!(parse_persisted(&text.replace(part, other)), None, "{other}");
        }
        for other in [String::new(), format!("{text}\n"), format!("{text}vm.swappiness = 1\n")] {
            assert_eq!(parse_persisted(&other), None, "{other}");
        }
    }

    #[test]
    fn second_change_keeps_the_value_before_the_first() {
        let change = Setting::dirty("dirty", 1 << 20, 0, 1 << 30);
        let other = Setting::queue("sda", "read_ahead_kb", "128", "1024");
        let changes = [&change, &other].map(PersistedSetting::from);
        let merged = merge_persisted(settings(), changes.to_vec());
        assert_eq!(merged.len(), 3);
        assert_eq!((&*merged[0].new, &*merged[0].restore_value), ("1073741824", "20"));
        assert_eq!(merged[2], changes[1]);
    }
}
