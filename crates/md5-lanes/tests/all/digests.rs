//! Tests of the digests in each number of lanes.

use haul_md5_lanes::{Digest, Lanes, digest, digest_many};
use md5::{Digest as _, Md5};
use proptest::prelude::*;

/// The test suite of \[RFC1321\], appendix A.5.
const VECTORS: &[(&[u8], &str)] = &[
    (b"", "d41d8cd98f00b204e9800998ecf8427e"),
    (b"a", "0cc175b9c0f1b6a831c399e269772661"),
    (b"abc", "900150983cd24fb0d6963f7d28e17f72"),
    (b"message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
    (b"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"),
    (
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        "d174ab98d277d9f5a5611c2c9f419d9f",
    ),
    (
        b"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
        "57edf4a22be3c955ac49da2e2107b67a",
    ),
];

/// Lengths at which the number of blocks changes.
const BORDERS: &[usize] = &[0, 1, 55, 56, 63, 64, 65, 119, 120, 127, 128, 129, 183, 184];

fn reference(message: &[u8]) -> Digest {
    Md5::digest(message).into()
}

/// Returns a message of a length that differs from messages with another seed.
fn message(bytes: usize, seed: usize) -> Vec<u8> {
    (0..bytes).map(|n| (n * 31 + n / 251 + seed * 97 + 1).to_le_bytes()[0]).collect()
}

fn assert_digests(messages: &[Vec<u8>]) {
    let slices: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    let expected: Vec<_> = slices.iter().map(|message| reference(message)).collect();
    for lanes in Lanes::available() {
        assert_eq!(lanes.digest_many(&slices), expected, "{} lanes", lanes.count());
    }
}

#[test]
fn vectors_of_the_rfc_match_in_all_lanes() {
    let hex = |digest: Digest| digest.map(|byte| format!("{byte:02x}")).concat();
    let messages: Vec<_> = VECTORS.iter().map(|vector| vector.0).collect();
    let expected: Vec<_> = VECTORS.iter().map(|vector| vector.1).collect();
    for lanes in Lanes::available() {
        let digests: Vec<_> = lanes.digest_many(&messages).into_iter().map(hex).collect();
        assert_eq!(digests, expected, "{} lanes", lanes.count());
    }
    let alone: Vec<_> = messages.iter().map(|message| hex(digest(message))).collect();
    assert_eq!(alone, expected);
}

#[test]
fn every_lane_hashes_lengths_around_block_borders() {
    for count in 1..=20 {
        for bytes in BORDERS {
            assert_digests(&(0..count).map(|seed| message(*bytes, seed)).collect::<Vec<_>>());
        }
        let mixed = |seed: usize| message(BORDERS[seed * 5 % BORDERS.len()], seed);
        assert_digests(&(0..count).map(mixed).collect::<Vec<_>>());
    }
}

#[test]
fn empty_list_has_no_digests() {
    assert_eq!(digest_many(&[]), Vec::<Digest>::new());
}

#[test]
fn lane_numbers_are_ascending_and_end_with_the_detected_one() {
    let counts: Vec<_> = Lanes::available().into_iter().map(Lanes::count).collect();
    assert!(counts.is_sorted() && counts.starts_with(&[1, 4]), "{counts:?}");
    assert_eq!(counts.last(), Some(&Lanes::detect().count()));
}

proptest! {
    #[test]
    fn digests_match_the_reference(
        messages in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..300),
                (prop::sample::select(BORDERS), any::<usize>())
                    .prop_map(|(bytes, seed)| message(bytes, seed % 1000)),
            ],
            0..50,
        ),
    ) {
        assert_digests(&messages);
    }
}
