//! Hashes two messages in the lanes of one vector register.
#![expect(clippy::print_stdout, reason = "an example prints")]

fn main() {
    let digests = haul_md5_lanes::digest_many(&[b"a", b"message digest"]);
    assert_eq!(digests[0], haul_md5_lanes::digest(b"a"));
    assert_eq!(digests[1][..4], [0xf9, 0x6b, 0x69, 0x7d]);
    for digest in digests {
        println!("{digest:02x?}");
    }
}
