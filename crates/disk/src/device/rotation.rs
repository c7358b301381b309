//! Parses what a drive reports about its rotation. The caller reads `/sys`.
//!
//! Source: SCSI Block Commands (SBC-4), the VPD page *Block Device Characteristics* (B1h). For ATA
//! drives, the kernel or the adapter translates word 217 of IDENTIFY DEVICE into this page.

const PAGE_CODE: u8 = 0xB1;

/// The lowest and the highest medium rotation rate in revolutions per minute. 0 means that the rate
/// is not reported, and 1 that the medium does not rotate; all other values are reserved.
const RATES: std::ops::RangeInclusive<u16> = 0x0401..=0xFFFE;

/// Returns `true` if this VPD page B1h reports a rotation rate.
pub(super) fn rotates(page: &[u8]) -> bool {
    let [_, code, length @ .., high, low] = *page.first_chunk::<6>().unwrap_or(&[0; 6]);
    let has_rate = code == PAGE_CODE && u16::from_be_bytes(length) >= 2;
    has_rate && RATES.contains(&u16::from_be_bytes([high, low]))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::device::Device;

    /// Returns a page as drives send it: 64 bytes, of which 60 follow the header.
    fn page(rate: u16) -> Vec<u8> {
        let mut page = vec![0; 64];
        page[..4].copy_from_slice(&[0, 0xB1, 0, 60]);
        page[4..6].copy_from_slice(&rate.to_be_bytes());
        page
    }

    #[test]
    fn only_a_rotation_rate_counts_as_rotation() {
        for (what, page, expected) in [
            ("7,200 rpm", page(7200), true),
            ("5,400 rpm", page(5400), true),
            ("the lowest rate", page(0x0401), true),
            ("the highest rate", page(0xFFFE), true),
            ("not reported", page(0), false),
            ("solid state", page(1), false),
            ("reserved", page(2), false),
            ("reserved", page(0x0400), false),
            ("reserved", page(0xFFFF), false),
            ("another page", [&[0, 0xB0][..], &page(7200)[2..]].concat(), false),
            ("a page without a rate", [&[0, 0xB1, 0, 1][..], &page(7200)[4..]].concat(), false),
            ("only the rate", page(7200)[..6].to_vec(), true),
            ("a truncated page", page(7200)[..5].to_vec(), false),
            ("no page", Vec::new(), false),
        ] {
            assert_eq!(rotates(&page), expected, "{what}");
        }
    }

    #[test]
    fn a_partition_has_the_page_of_its_disk_and_virtual_disks_have_none() {
        let root = tempfile::tempdir().unwrap();
        let device = root.path().join("sys/block/sda/device");
        fs::create_dir_all(&device).unwrap();
        let at = |name: &str, disk: &str| {
            let (name, disk) = (name.to_owned(), disk.to_owned());
            Device { major: 8, minor: 1, name, disk }.reports_rotation(root.path())
        };
        assert!(!at("sda1", "sda"), "the kernel or the drive may lack the page");
        fs::write(device.join("vpd_pgb1"), page(7200)).unwrap();
        assert!(at("sda1", "sda") && at("sda", "sda"));
        assert!(!at("vda1", "vda") && !at("loop0", "loop0") && !at("dm-0", "dm-0"));
        assert!(!Device::at("/dev/null").is_some_and(|it| it.reports_rotation(Path::new("/"))));
    }

    proptest! {
        #[test]
        fn parser_never_panics(page in any::<Vec<u8>>()) {
            let _ = rotates(&page);
        }
    }
}
