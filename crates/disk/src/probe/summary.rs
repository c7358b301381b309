//! The text representation of [`Storage`], one line per property.

use std::fmt::{self, Display, Formatter};

use super::{DirectIo, Storage};

impl Display for Storage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let queue = &self.queue;
        write!(f, "{}", self.path.display())?;
        let mut line = |label: &str, value: String| write!(f, "\n  {label:<14} {value}");
        line("file system", self.file_system_words())?;
        line("journal", yes_no(self.journal).to_owned())?;
        line("copy on write", yes_no(self.copy_on_write).to_owned())?;
        line("direct I/O", self.direct_io_words())?;
        line("device", self.device_words())?;
        let Some(_) = self.device else { return Ok(()) };
        line("rotational", yes_no(queue.rotational).to_owned())?;
        let physical = bytes(queue.physical_block_bytes);
        line(
            "blocks",
            format!("{} logical, {physical} physical", bytes(queue.logical_block_bytes)),
        )?;
        let cache = match queue.volatile_write_cache {
            Some(true) => "volatile",
            Some(false) => "none or non-volatile",
            None => UNKNOWN,
        };
        line("write cache", format!("{cache}; FUA: {}", yes_no(queue.fua)))?;
        line("atomic writes", up_to(queue.atomic_write_bytes_max))?;
        line("write zeroes", up_to(queue.zero_write_bytes_max))?;
        line("readahead", bytes(queue.readahead_bytes))?;
        let depth = queue.depth.map_or(UNKNOWN.to_owned(), |depth| format!("{depth} requests"));
        let scheduler = queue.scheduler.as_deref().unwrap_or(UNKNOWN);
        line("queue", format!("{depth}, scheduler {scheduler}"))
    }
}

impl Storage {
    fn file_system_words(&self) -> String {
        match &self.mount {
            Some(mount) => format!(
                "{} of {} on {} ({})",
                self.file_system,
                mount.source,
                mount.point,
                mount.options.join(",")
            ),
            None => self.file_system.to_string(),
        }
    }

    fn direct_io_words(&self) -> String {
        match self.direct_io {
            None => UNKNOWN.to_owned(),
            Some(DirectIo::Unsupported) => "no".to_owned(),
            Some(DirectIo::Aligned { memory_bytes, offset_bytes }) => {
                format!("aligned to {offset_bytes} B in the file, {memory_bytes} B in memory")
            }
        }
    }

    fn device_words(&self) -> String {
        match &self.device {
            None => UNKNOWN.to_owned(),
            Some(device) if device.name == device.disk => {
                format!("{} ({}:{})", device.name, device.major, device.minor)
            }
            Some(device) => format!(
                "{} ({}:{}), a partition of {}",
                device.name, device.major, device.minor, device.disk
            ),
        }
    }
}

const UNKNOWN: &str = "unknown";

fn yes_no(value: Option<bool>) -> &'static str {
    match value {
        Some(true) => "yes",
        Some(false) => "no",
        None => UNKNOWN,
    }
}

fn bytes(value: Option<u64>) -> String {
    match value {
        Some(bytes) if bytes >= 1 << 20 && bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        Some(bytes) if bytes >= 1 << 10 && bytes % (1 << 10) == 0 => format!("{} KiB", bytes >> 10),
        Some(bytes) => format!("{bytes} B"),
        None => UNKNOWN.to_owned(),
    }
}

fn up_to(value: Option<u64>) -> String {
    match value {
        Some(0) => "no".to_owned(),
        Some(_) => format!("up to {}", bytes(value)),
        None => UNKNOWN.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FileSystem, Mount};
    use super::*;
    use crate::device::{Device, Queue};

    fn storage() -> Storage {
        Storage {
            path: "/srv/data".into(),
            file_system: FileSystem::Ext4,
            mount: Some(Mount {
                point: "/srv".to_owned(),
                file_system: "ext4".to_owned(),
                source: "/dev/sda1".to_owned(),
                options: vec!["rw".to_owned(), "noatime".to_owned()],
            }),
            device: Some(Device {
                major: 8,
                minor: 1,
                name: "sda1".to_owned(),
                disk: "sda".to_owned(),
            }),
            queue: Queue {
                rotational: Some(true),
                volatile_write_cache: Some(true),
                fua: Some(false),
                logical_block_bytes: Some(512),
                physical_block_bytes: Some(16384),
                atomic_write_bytes_max: Some(16384),
                zero_write_bytes_max: Some(0),
                readahead_bytes: Some(128 << 10),
                depth: Some(64),
                scheduler: None,
            },
            journal: Some(true),
            copy_on_write: Some(false),
            direct_io: Some(DirectIo::Aligned { memory_bytes: 4, offset_bytes: 512 }),
        }
    }

    #[test]
    fn summary_has_a_line_per_property() {
        let expected = "\
/srv/data
  file system    ext4 of /dev/sda1 on /srv (rw,noatime)
  journal        yes
  copy on write  no
  direct I/O     aligned to 512 B in the file, 4 B in memory
  device         sda1 (8:1), a partition of sda
  rotational     yes
  blocks         512 B logical, 16 KiB physical
  write cache    volatile; FUA: no
  atomic writes  up to 16 KiB
  write zeroes   no
  readahead      128 KiB
  queue          64 requests, scheduler unknown";
        assert_eq!(storage().to_string(), expected);
    }

    #[test]
    fn summary_without_device_omits_its_queue() {
        let unknown = Storage { device: None, mount: None, direct_io: None, ..storage() };
        let text = unknown.to_string();
        assert!(text.ends_with("device         unknown"), "{text}");
        assert!(text.contains("direct I/O     unknown"), "{text}");
    }

    #[test]
    fn write_unit_is_the_largest_alignment() {
        assert_eq!(storage().write_unit_bytes(), 16384);
        let plain = Storage { queue: Queue::default(), ..storage() };
        assert_eq!(plain.write_unit_bytes(), 4096);
        let aligned = DirectIo::Aligned { memory_bytes: 4, offset_bytes: 65536 };
        assert_eq!(Storage { direct_io: Some(aligned), ..storage() }.write_unit_bytes(), 65536);
    }
}
