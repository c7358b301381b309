//! Reads the amount of dirty memory (cached pages not yet written to the disk), and sets the
//! kernel's limits on it.

use std::path::Path;

use haul_disk::KernelFiles;
use haul_measure::Result;

use crate::setting::{Setting, read};

const SETTINGS: &str = "/proc/sys/vm";

/// The files that set a limit in bytes and in percent; when one is written, the kernel sets the
/// other to 0.
const LIMIT: [&str; 2] = ["dirty_bytes", "dirty_ratio"];
const BACKGROUND: [&str; 2] = ["dirty_background_bytes", "dirty_background_ratio"];

/// The dirty limits of the kernel, which are restored on drop and when the process ends.
#[derive(Debug)]
pub(crate) struct DirtyLimits {
    _settings: [Setting; 2],
}

impl DirtyLimits {
    /// Sets the dirty limit, which the kernel keeps by making writers wait, to `bytes`. Sets the
    /// background limit, above which the kernel starts writeback, to half of `bytes`.
    pub(crate) fn set(bytes: u64) -> Result<Self> {
        Self::set_in(Path::new(SETTINGS), bytes)
    }

    fn set_in(dir: &Path, bytes: u64) -> Result<Self> {
        let exchange = |[bytes_setting, percent_setting]: [&str; 2], bytes: u64| {
            let (bytes_setting, percent_setting) =
                (dir.join(bytes_setting), dir.join(percent_setting));
            let before = read(&bytes_setting)?;
            let value = bytes.to_string();
            if before == "0" {
                Setting::exchange(
                    &bytes_setting,
                    &value,
                    &percent_setting,
                    &read(&percent_setting)?,
                )
            } else {
                Setting::exchange(&bytes_setting, &value, &bytes_setting, &before)
            }
        };
        Ok(Self { _settings: [exchange(LIMIT, bytes)?, exchange(BACKGROUND, bytes / 2)?] })
    }
}

/// Returns the present limits as text for a note.
pub(super) fn limits() -> String {
    let text = |limits: haul_disk::DirtyLimits| {
        let (limit, background) = (limits.limit_bytes >> 20, limits.background_bytes >> 20);
        format!("writers wait at {limit} MiB, and writeback starts at {background} MiB")
    };
    KernelFiles::default().machine().limits().map_or("unknown".to_owned(), text)
}

/// Returns the bytes of memory that are dirty or under writeback, on the whole machine.
pub(super) fn dirty_bytes() -> Option<u64> {
    let memory = KernelFiles::default().machine().memory;
    memory.dirty_bytes?.checked_add(memory.writeback_bytes?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn limits_are_restored_in_their_original_unit() {
        for (bytes_before, ratio_before) in [("0", "20"), ("1048576", "0")] {
            let dir = tempfile::tempdir().unwrap();
            let at = |name: &str| dir.path().join(name);
            for [bytes_setting, percent_setting] in [LIMIT, BACKGROUND] {
                fs::write(at(bytes_setting), format!("{bytes_before}\n")).unwrap();
                fs::write(at(percent_setting), format!("{ratio_before}\n")).unwrap();
            }
            let set = DirtyLimits::set_in(dir.path(), 64 << 20).unwrap();
            assert_eq!(read(&at("dirty_bytes")).unwrap(), "67108864");
            assert_eq!(read(&at("dirty_background_bytes")).unwrap(), "33554432");
            // When `dirty_bytes` is written, the kernel sets `dirty_ratio` to 0. These are plain
            // files, so the test sets it.
            fs::write(at("dirty_ratio"), "0").unwrap();
            drop(set);
            let (name, before) = match ratio_before {
                "0" => ("dirty_bytes", bytes_before),
                _ => ("dirty_ratio", ratio_before),
            };
            assert_eq!(read(&at(name)).unwrap(), before);
        }
    }
}
