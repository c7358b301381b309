//! Detects the hash function of a checksum list from the file name of the list, such as
//! `SHA256SUMS`. If the file name indicates no function, hashes some listed files with each function
//! whose digests have the length of the listed ones.

use std::io;
use std::path::Path;

use haul_bulk_read::digest::HashKind;
use haul_bulk_read::open_file;

use crate::as_path;
use crate::check::resolve;
use crate::line::{LENGTHS, Line};
use crate::stream::StreamDigests;

/// The maximum number of files to try. A single file is not enough: it may have changed after the
/// list was written.
const FILES_MAX: usize = 8;

/// The hash functions with the substrings of list names that indicate them. More specific
/// substrings come first.
const KINDS: [(HashKind, &[&str]); 10] = [
    (HashKind::Sha3_256, &["sha3-256", "sha3_256"]),
    (HashKind::Sha3_512, &["sha3-512", "sha3_512"]),
    (HashKind::Sha256, &["sha256"]),
    (HashKind::Sha512, &["sha512"]),
    (HashKind::Sha1, &["sha1"]),
    (HashKind::Md5, &["md5"]),
    (HashKind::Blake3, &["b3sum", "blake3", ".b3"]),
    (HashKind::Xxh3, &["xxh128", "xxh3"]),
    (HashKind::Xxh64, &["xxh64"]),
    (HashKind::Crc32, &["crc32", ".sfv"]),
];

/// The hash functions in the order in which they are tried. If no file matches, the first function
/// of the digest length is used. BLAKE3 comes first because it is the default of `haul sum`.
const TRIED: [HashKind; 10] = [
    HashKind::Blake3,
    HashKind::Sha256,
    HashKind::Sha3_256,
    HashKind::Sha512,
    HashKind::Sha3_512,
    HashKind::Md5,
    HashKind::Xxh3,
    HashKind::Sha1,
    HashKind::Xxh64,
    HashKind::Crc32,
];

/// Sets the hash function of each line without one. The function follows from the file name of the
/// list, or otherwise from hashing the first listed files with each function of the same digest
/// length. `stdin` has the digests of the lines for stdin. Returns the functions that were tried if
/// no file matched, otherwise an empty list.
pub fn detect(lines: &mut [Line], list: &Path, stdin: Option<&StreamDigests>) -> Vec<HashKind> {
    lines.iter_mut().for_each(resolve);
    let named = by_name(list);
    let mut unmatched = Vec::new();
    for bytes in LENGTHS {
        let is_unknown = |line: &&mut Line| line.kind.is_none() && line.sum.len() == bytes;
        let candidates: Vec<HashKind> =
            TRIED.into_iter().filter(|kind| kind.bytes() == bytes).collect();
        let mut unknown: Vec<&mut Line> = lines.iter_mut().filter(is_unknown).collect();
        let Some(first) = candidates.first().filter(|_| !unknown.is_empty()) else { continue };
        let kind = match named.filter(|kind| kind.bytes() == bytes) {
            Some(kind) => kind,
            None => first_match(&unknown, &candidates, stdin).unwrap_or_else(|| {
                unmatched.extend_from_slice(&candidates);
                *first
            }),
        };
        unknown.iter_mut().for_each(|line| line.kind = Some(kind));
    }
    unmatched
}

/// Returns the hash function that the file name of a list indicates.
fn by_name(list: &Path) -> Option<HashKind> {
    let name = list.file_name()?.to_string_lossy().to_lowercase();
    let has_any = |words: &[&str]| words.iter().any(|word| name.contains(word));
    KINDS.iter().find(|(_, words)| has_any(words)).map(|(kind, _)| *kind)
}

/// Returns the first hash function that gives the listed digest for one of the first readable
/// files.
fn first_match(
    lines: &[&mut Line],
    candidates: &[HashKind],
    stdin: Option<&StreamDigests>,
) -> Option<HashKind> {
    let mut files = 0;
    for line in lines {
        let found = if line.is_stdin() {
            stdin.map(|stdin| stdin.matching(&line.sum, candidates))
        } else {
            matching(as_path(&line.name), &line.sum, candidates).ok()
        };
        match found {
            Some(Some(kind)) => return Some(kind),
            Some(None) => files += 1,
            None => {}
        }
        if files == FILES_MAX {
            break;
        }
    }
    None
}

/// Hashes a regular file with each of the hash functions, and returns the one that gives `sum`.
/// Other files are not read: reading a pipe could wait.
fn matching(path: &Path, sum: &[u8], candidates: &[HashKind]) -> io::Result<Option<HashKind>> {
    let digests = StreamDigests::read(open_file(path)?, candidates)?;
    Ok(digests.matching(sum, candidates))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_names_select_the_hash_function() {
        for (list, kind) in [
            ("SHA256SUMS", Some(HashKind::Sha256)),
            ("d/image.iso.sha512", Some(HashKind::Sha512)),
            ("files.SHA3-256", Some(HashKind::Sha3_256)),
            ("MD5SUMS.txt", Some(HashKind::Md5)),
            ("b3sums", Some(HashKind::Blake3)),
            ("x.b3", Some(HashKind::Blake3)),
            ("tree.xxh128", Some(HashKind::Xxh3)),
            ("SHA1SUMS", Some(HashKind::Sha1)),
            ("disc.sfv", Some(HashKind::Crc32)),
            ("sha256/list", None),
            ("-", None),
        ] {
            assert_eq!(by_name(Path::new(list)), kind, "{list}");
        }
    }

    #[test]
    fn each_hash_function_is_tried_and_has_names() {
        for kind in HashKind::ALL {
            assert!(TRIED.contains(&kind), "{kind:?}");
            assert!(KINDS.iter().any(|(named, _)| *named == kind), "{kind:?}");
        }
    }
}
