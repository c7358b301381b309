//! Parses device names in `/sys/dev/block` link targets. The caller reads the links.
//!
//! Source: the kernel's `Documentation/ABI/stable/sysfs-block`.

/// Returns the names of the whole disk and of the device, in this order, from the target of the
/// link `/sys/dev/block/MAJ:MIN`. A partition's directory lies in its disk's directory.
pub(crate) fn disk_and_name(link: &str, is_partition: bool) -> Option<(String, String)> {
    let mut parts = link.rsplit('/').filter(|part| !part.is_empty() && *part != "..");
    let name = parts.next()?;
    let disk = if is_partition { parts.next()? } else { name };
    Some((disk.to_owned(), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn partition_resolves_to_its_disk() {
        for (link, is_partition, disk, name) in [
            ("../../devices/pci0000:00/0000:00:02.0/virtio1/block/vda", false, "vda", "vda"),
            ("../../devices/pci0000:00/nvme/nvme0/nvme0n1/nvme0n1p2", true, "nvme0n1", "nvme0n1p2"),
            ("../../devices/virtual/block/loop3", false, "loop3", "loop3"),
            ("../../devices/virtual/block/loop3/loop3p1", true, "loop3", "loop3p1"),
            (
                "../../devices/pci0000:00/ata1/host0/target0:0:0/0:0:0:0/block/sda/sda1/",
                true,
                "sda",
                "sda1",
            ),
        ] {
            let expected = Some((disk.to_owned(), name.to_owned()));
            assert_eq!(disk_and_name(link, is_partition), expected, "{link}");
        }
        assert_eq!(disk_and_name("../..", false), None);
        assert_eq!(disk_and_name("vda", true), None);
    }

    proptest! {
        #[test]
        fn parser_never_panics(text in "\\PC*") {
            let _ = disk_and_name(&text, true);
        }
    }
}
