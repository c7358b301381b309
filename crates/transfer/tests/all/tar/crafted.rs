//! Archives whose bytes are stated, since GNU tar does not write them, or only for huge files. See
//! `docs/decisions/0023-tar-archives.md`.

use std::fs;

use haul_transfer::TarError;

use super::{Case, gnu_tar};
use crate::Log;

const DIRECTORY: u8 = b'5';
const PAX: u8 = b'x';
const REGULAR: u8 = b'0';

/// Returns a header of the format ustar, whose checksum adds the bytes up by `value`.
fn header_with(name: &str, kind: u8, bytes: usize, value: fn(u8) -> i32) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[124..136].copy_from_slice(format!("{bytes:011o}\0").as_bytes());
    block[156] = kind;
    block[257..265].copy_from_slice(b"ustar\x0000");
    block[148..156].fill(b' ');
    let checksum: i32 = block.iter().map(|byte| value(*byte)).sum();
    block[148..156].copy_from_slice(format!("{checksum:06o}\0 ").as_bytes());
    block
}

fn header(name: &str, kind: u8, bytes: usize) -> Vec<u8> {
    header_with(name, kind, bytes, i32::from)
}

/// Returns a member whose header states `stated_bytes`.
fn member(name: &str, kind: u8, content: &[u8], stated_bytes: usize) -> Vec<u8> {
    let mut member = header(name, kind, stated_bytes);
    member.extend_from_slice(content);
    member.resize(member.len().next_multiple_of(512), 0);
    member
}

fn pax(records: &[u8]) -> Vec<u8> {
    member("pax", PAX, records, records.len())
}

/// Imports the members and returns the keys and lengths of the objects.
fn imported(members: &[Vec<u8>]) -> Vec<(String, usize)> {
    let (case, log) = (Case::new(), Log::default());
    let archive = [members.concat(), vec![0; 1024]].concat();
    case.import(&archive, &log).1.unwrap();
    assert_eq!(log.failures(), [""; 0]);
    case.dump().into_iter().map(|(key, bytes, _)| (key, bytes.len())).collect()
}

fn object(key: &str, bytes: usize) -> (String, usize) {
    (key.to_owned(), bytes)
}

#[test]
fn record_in_a_name_is_part_of_the_name() {
    let case = Case::new();
    let tree = case.dir.path().join("tree");
    fs::create_dir(&tree).unwrap();
    let name = "é\n10 path=b";
    fs::write(tree.join(name), "content").unwrap();
    case.import(&gnu_tar(&tree, &["-c", "--format=pax", name]), &Log::default()).1.unwrap();
    assert_eq!(case.keys(), [name]);
}

#[test]
fn length_follows_a_name_with_a_newline() {
    // The header of a file of 8 GiB and more states no length.
    let members = [
        pax(b"13 path=\xc3\xa9\nf\n12 size=600\n"),
        member("f", REGULAR, &[7; 600], 0),
        member("next", REGULAR, b"", 0),
    ];
    assert_eq!(imported(&members), [object("next", 0), object("é\nf", 600)]);
}

#[test]
fn records_of_two_pax_headers_apply_to_one_member() {
    let members = [pax(b"9 path=a\n"), pax(b"11 mtime=1\n"), member("f", REGULAR, b"", 0)];
    assert_eq!(imported(&members), [object("a", 0)]);
}

#[test]
fn length_of_a_directory_is_not_that_of_content() {
    let members = [header("directory/", DIRECTORY, 1000), member("f", REGULAR, b"", 0)];
    assert_eq!(imported(&members), [object("f", 0)]);
}

#[test]
fn checksums_of_signed_bytes_are_valid() {
    let signed = header_with("é", REGULAR, 0, |byte| byte.cast_signed().into());
    assert_ne!(signed, header("é", REGULAR, 0));
    assert_eq!(imported(&[signed]), [object("é", 0)]);
}

#[test]
fn long_pax_header_is_rejected_before_it_is_read() {
    for kind in [PAX, b'g', b'L', b'K'] {
        let archive = header("long", kind, (1 << 20) + 1);
        let (_, result) = Case::new().import(&archive, &Log::default());
        assert!(matches!(result, Err(TarError::Malformed { at: 0, .. })), "{result:?}");
    }
}
