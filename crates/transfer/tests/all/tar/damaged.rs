//! Archives that are truncated, damaged or unreadable.

use std::io::Read;

use haul_file_store::Attributes;
use haul_transfer::{TarError, TarImport};

use super::{BUCKET, Case, odd_objects};
use crate::{BIG_OBJECT_BYTES, Log};

#[test]
fn truncated_archive_is_an_error_wherever_it_ends_and_stores_what_is_before() {
    let from = Case::new();
    for n in 0..20 {
        from.put(&format!("{n:02}"), &[n; 700], &Attributes::new());
    }
    let archive = from.export("");
    // A PAX header and its content, a header, and two blocks of content.
    assert_eq!(archive.len(), 20 * 5 * 512 + 1024);
    let to = Case::new();
    for end in (0..archive.len() - 512).step_by(509) {
        let (done, result) = to.import(&archive[..end], &Log::default());
        let error = result.unwrap_err();
        // After one block of zeros, the archive is at its end.
        assert!(matches!(error, TarError::Truncated { at } if at == end as u64), "{end}: {error}");
        // The content of the first member ends at byte 2236, its padding at byte 2560.
        assert_eq!(done.imported.files, ((end + 2560 - 2236) / 2560) as u64, "{end}");
        assert!(!done.is_complete);
    }
    let (done, result) = to.import(&archive[..archive.len() - 512], &Log::default());
    result.unwrap();
    assert_eq!(done.imported.files, 20);
}

#[test]
fn damage_and_trailing_data_are_reported_with_their_place() {
    let from = Case::new();
    for key in ["a", "b"] {
        from.put(key, b"bytes", &Attributes::new());
    }
    let archive = from.export("");
    let import = |archive: &[u8]| {
        let to = Case::new();
        let (done, result) = to.import(archive, &Log::default());
        assert_eq!(to.keys().len() as u64, done.imported.files);
        (done.imported.files, result.unwrap_err())
    };
    let mut damaged = archive.clone();
    damaged[4 * 512 + 3] ^= 1;
    let (stored, error) = import(&damaged);
    assert!(matches!(error, TarError::Malformed { at: 2048, .. }), "{error}");
    assert_eq!(stored, 1);
    let (stored, error) = import(&[&archive[..], &archive].concat());
    assert!(
        matches!(error, TarError::TrailingData { at } if at == archive.len() as u64),
        "{error}"
    );
    assert_eq!(stored, 2);
    let (stored, error) = import(b"no archive".repeat(100).as_slice());
    assert!(matches!(error, TarError::Malformed { at: 0, .. }), "{error}");
    assert_eq!(stored, 0);
}

#[test]
fn no_bytes_make_the_reader_panic() {
    let from = Case::new();
    odd_objects(&from);
    from.store.delete(BUCKET, "lengths/3145735").unwrap();
    let archive = from.export("");
    // A linear congruential generator (Knuth's MMIX).
    let mut state = 1_u64;
    let mut random = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap()
    };
    let to = Case::new();
    for round in 0..200 {
        let mut damaged = archive[..118 * 512].to_vec();
        for _ in 0..3 {
            let at = random() % damaged.len();
            damaged[at] = u8::try_from(random() % 256).unwrap();
            if round % 2 == 0 && at % 512 < 148 {
                set_checksum(&mut damaged[at / 512 * 512..][..512]);
            }
        }
        let (_, result) = to.import(&damaged, &Log::default());
        assert!(result.is_err(), "it is truncated in any case");
    }
}

/// Gives a header a valid checksum, so that its fields are decoded.
fn set_checksum(header: &mut [u8]) {
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

/// An archive that ends with an error of its own.
struct Broken<'a>(&'a [u8]);

impl Read for Broken<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(buffer) {
            Ok(0) => Err(std::io::Error::other("broken")),
            other => other,
        }
    }
}

#[test]
fn unreadable_archive_stores_what_was_read() {
    let (from, to) = (Case::new(), Case::new());
    from.put("a", b"bytes", &Attributes::new());
    let archive = from.export("");
    let (store, big_object_bytes, bucket) = (&to.store, BIG_OBJECT_BYTES, BUCKET);
    let import = TarImport { store, bucket, prefix: "", big_object_bytes, skip_existing: false };
    let length = archive.len() - 1024;
    let (done, result) = import.run(&mut Broken(&archive[..length]), &Log::default());
    assert!(matches!(result, Err(TarError::Read { at, .. }) if at == length as u64));
    assert_eq!(done.imported.files, 1);
}
