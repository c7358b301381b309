//! The names and the counters of a block device in `/sys`, understood. Pure.
//!
//! Source: `Documentation/ABI/stable/sysfs-block` and `Documentation/block/stat.rst` of the kernel.

use crate::counters::DeviceCounters;

/// The unit of all sector counts in `/sys`, whatever the device calls a sector.
const SECTOR_BYTES: u64 = 512;

/// The names of the whole disk and of the device itself, from what `/sys/dev/block/MAJ:MIN`
/// links to: a partition is a directory in its disk's.
pub(crate) fn disk_and_name(link: &str, is_partition: bool) -> Option<(String, String)> {
    let mut parts = link.rsplit('/').filter(|part| !part.is_empty() && *part != "..");
    let name = parts.next()?;
    let disk = if is_partition { parts.next()? } else { name };
    Some((disk.to_owned(), name.to_owned()))
}

/// The counters in a device's `stat`, which has all of them since Linux 5.5.
pub(crate) fn counters(stat: &str) -> Option<DeviceCounters> {
    let numbers = stat.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
    let &[
        reads,
        _reads_merged,
        read_sectors,
        read_ms,
        writes,
        _writes_merged,
        written_sectors,
        write_ms,
        _in_flight,
        busy_ms,
        _queued_ms,
        discards,
        _discards_merged,
        discarded_sectors,
        _discard_ms,
        syncs,
        sync_ms,
        ..,
    ] = numbers.as_slice()
    else {
        return None;
    };
    Some(DeviceCounters {
        reads,
        read_bytes: read_sectors.checked_mul(SECTOR_BYTES)?,
        read_ms,
        writes,
        written_bytes: written_sectors.checked_mul(SECTOR_BYTES)?,
        write_ms,
        discards,
        discarded_bytes: discarded_sectors.checked_mul(SECTOR_BYTES)?,
        syncs,
        sync_ms,
        busy_ms,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_partition_leads_to_its_disk() {
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

    #[test]
    fn the_counters_of_a_disk_are_understood() {
        let stat = "   60925    11229  4675794    22692    28265    23987  4170904    10946        0     \
                    7988    34361     9083       50   752968      584     3968      137\n";
        let expected = DeviceCounters {
            reads: 60925,
            read_bytes: 4_675_794 * 512,
            read_ms: 22692,
            writes: 28265,
            written_bytes: 4_170_904 * 512,
            write_ms: 10946,
            discards: 9083,
            discarded_bytes: 752_968 * 512,
            syncs: 3968,
            sync_ms: 137,
            busy_ms: 7988,
        };
        assert_eq!(counters(stat), Some(expected));
        assert_eq!(counters(&stat.replace("3968      137", "")), None, "a kernel before 5.5");
        assert_eq!(counters(&stat.replace("60925", "-1")), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(text in "\\PC*", numbers in any::<[u64; 17]>()) {
            let _ = disk_and_name(&text, true);
            let _ = counters(&text);
            let _ = counters(&numbers.map(|number| number.to_string()).join(" "));
        }
    }
}
