//! What is in a directory, as a page or as JSON.

mod page;
mod shared;

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{self, AtFlags, FileType, Stat};
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::answer::Page;
use crate::find::Finder;
use page::{POLICY, page};
pub(crate) use shared::{Listed, ListingKey, Listings};

/// More names than this are cut off, and the listing says so: each of them may be a read of the disk
/// that others wait for, and a megabyte or two is what browsers still show at once.
const ENTRIES_MAX: usize = 10_000;

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: Vec<u8>,
    /// Of a file, its bytes; a directory has none.
    pub(crate) bytes: Option<u64>,
    pub(crate) modified_s: u64,
}

/// A directory, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listing {
    /// Directories first, then by name.
    pub(crate) entries: Vec<Entry>,
    pub(crate) is_cut: bool,
}

/// Reads a directory. What could not be served is not told: other kinds of files, hidden ones, and
/// links out of the root. What a link leads to is told by `followed`.
pub(crate) fn read(
    dir: OwnedFd,
    with_dotfiles: bool,
    followed: impl Fn(&[u8]) -> Option<Stat>,
) -> Result<Listing, Errno> {
    let mut entries = Vec::new();
    let mut is_cut = false;
    let mut names = fs::Dir::new(dir)?;
    while let Some(found) = names.read() {
        let found = found?;
        let name = found.file_name();
        let bytes = name.to_bytes();
        if matches!(bytes, b"." | b"..") || (bytes.starts_with(b".") && !with_dotfiles) {
            continue;
        }
        let stat = fs::statat(names.fd()?, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        let is_link = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
        let stat = if stat.as_ref().is_some_and(is_link) { followed(bytes) } else { stat };
        // Gone meanwhile, or a link that leads nowhere we go.
        let Some(stat) = stat else { continue };
        let bytes = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Some(u64::try_from(stat.st_size).unwrap_or(0)),
            FileType::Directory => None,
            _ => continue,
        };
        if entries.len() == ENTRIES_MAX {
            is_cut = true;
            break;
        }
        let modified_s = u64::try_from(stat.st_mtime).unwrap_or(0);
        entries.push(Entry { name: name.to_bytes().to_vec(), bytes, modified_s });
    }
    entries
        .sort_unstable_by(|a, b| (a.bytes.is_some(), &a.name).cmp(&(b.bytes.is_some(), &b.name)));
    Ok(Listing { entries, is_cut })
}

/// The directory at a decoded path, as a page.
fn read_page(finder: &Finder, dir: OwnedFd, path: &[u8], as_json: bool) -> Result<Page, Errno> {
    let followed = |name: &[u8]| finder.followed(path, name);
    let listing = read(dir, finder.with_dotfiles, followed)?;
    let answer = if as_json {
        Page { content_type: "application/json", ..Page::plain(200, to_json(&listing)) }
    } else {
        let content_type = "text/html; charset=utf-8";
        Page { content_type, ..Page::plain(200, page(path, &listing)) }
            .with("Content-Security-Policy", POLICY)
    };
    Ok(answer.with("Vary", "Accept").with("Cache-Control", "no-cache"))
}

/// The same for programs. Names that are no text have what is none replaced.
pub(crate) fn to_json(listing: &Listing) -> String {
    let entries: Vec<Value> = listing.entries.iter().map(entry_json).collect();
    json!({ "entries": entries, "is_cut": listing.is_cut }).to_string()
}

fn entry_json(entry: &Entry) -> Value {
    let name = Path::new(std::ffi::OsStr::from_bytes(&entry.name)).to_string_lossy();
    let href = crate::path::encoded(&entry.name);
    match entry.bytes {
        Some(bytes) => json!({
            "name": name, "type": "file", "href": href, "bytes": bytes,
            "modified_s": entry.modified_s,
        }),
        None => json!({
            "name": name, "type": "directory", "href": format!("{href}/"),
            "modified_s": entry.modified_s,
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(listing: &Listing) -> Vec<String> {
        let name = |entry: &Entry| String::from_utf8_lossy(&entry.name).into_owned();
        listing.entries.iter().map(name).collect()
    }

    #[test]
    fn a_listing_is_sorted_and_tells_only_what_can_be_served() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["b.txt", "a.txt", "Z", ".hidden"] {
            std::fs::write(path(name), name).unwrap();
        }
        std::fs::create_dir(path("zz")).unwrap();
        std::fs::create_dir(path(".git")).unwrap();
        symlink("nowhere", path("broken")).unwrap();
        symlink("a.txt", path("link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        let open = || OwnedFd::from(std::fs::File::open(dir.path()).unwrap());
        let followed = |name: &[u8]| fs::stat(path(str::from_utf8(name).unwrap())).ok();
        let listing = read(open(), false, followed).unwrap();
        assert_eq!(names(&listing), ["zz", "Z", "a.txt", "b.txt", "link"]);
        assert_eq!(listing.entries[2].bytes, Some(5));
        assert!(!listing.is_cut);
        let all = read(open(), true, followed).unwrap();
        assert_eq!(names(&all), [".git", "zz", ".hidden", "Z", "a.txt", "b.txt", "link"]);
    }

    #[test]
    fn programs_get_json() {
        let entry = |name: &str, bytes| Entry { name: name.into(), bytes, modified_s: 7 };
        let entries = vec![entry("d \"x\"", None), entry("f%.txt", Some(3))];
        let text = to_json(&Listing { entries, is_cut: false });
        let told: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            told,
            json!({ "is_cut": false, "entries": [
                { "name": "d \"x\"", "type": "directory", "href": "d%20%22x%22/", "modified_s": 7 },
                { "name": "f%.txt", "type": "file", "href": "f%25.txt", "bytes": 3, "modified_s": 7 },
            ]})
        );
    }
}
