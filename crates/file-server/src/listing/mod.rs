//! Lists directories, as HTML or as JSON.

pub(crate) mod cache;
pub(crate) mod cursor;
mod entry;
mod order;
mod page;
mod smallest;

use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use haul_disk::file_system_type;
use rustix::fs::{self, AtFlags, FileType, Stat};
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::lookup::finder::Finder;
use crate::page::Page;
use cursor::Cursor;
use entry::{Entry, Listing};
use page::{POLICY, page};
use smallest::SmallestNames;

/// Reads a page of a directory. Names that the server would not serve are left out: special files,
/// hidden names, and links out of the root. `stat_target` returns the status of the target of a link.
///
/// All names are read, but only those of the page are kept in memory, and only their status is read.
/// A name that exists during all requests is on exactly one page, even if other names are added or
/// removed in between.
pub(crate) fn read(
    dir: OwnedFd,
    with_dotfiles: bool,
    cursor: &Cursor,
    stat_target: impl Fn(&[u8]) -> Option<Stat>,
) -> Result<Listing, Errno> {
    let mut smallest = SmallestNames::new(cursor.limit);
    let mut dir = fs::Dir::new(dir)?;
    while let Some(found) = dir.read() {
        let found = found?;
        let name = found.file_name().to_bytes();
        let is_hidden = matches!(name, b"." | b"..") || (name.starts_with(b".") && !with_dotfiles);
        if !is_hidden && name > &*cursor.after && is_served(found.file_type()) {
            smallest.push(name);
        }
    }
    let (mut names, is_cut) = smallest.into_sorted();
    // A name that is renamed meanwhile may be found twice.
    names.dedup();
    let next = names.last().filter(|_| is_cut).map(|last| cursor.next(last));
    let fd = dir.fd()?;
    let entries = names.into_iter().filter_map(|name| entry(fd, name, &stat_target));
    // The files of an interface to the kernel have no length.
    let has_files = !file_system_type(fd).is_ok_and(|found| found.is_kernel_interface());
    let entries = entries.filter(|entry| has_files || entry.bytes.is_none()).collect();
    Ok(Listing { entries, is_continued: !cursor.after.is_empty(), next })
}

/// Returns `false` if a name of this type is never served.
fn is_served(file_type: FileType) -> bool {
    use FileType::{Directory, RegularFile, Symlink, Unknown};
    matches!(file_type, RegularFile | Directory | Symlink | Unknown)
}

/// Returns `None` if the name was removed, or is a link that cannot be served.
fn entry(
    dir: BorrowedFd<'_>,
    name: Vec<u8>,
    stat_target: &impl Fn(&[u8]) -> Option<Stat>,
) -> Option<Entry> {
    let stat = fs::statat(dir, &*name, AtFlags::SYMLINK_NOFOLLOW).ok();
    let is_link = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
    let stat = if stat.as_ref().is_some_and(is_link) { stat_target(&name) } else { stat }?;
    let bytes = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Some(u64::try_from(stat.st_size).unwrap_or(0)),
        FileType::Directory => None,
        _ => return None,
    };
    Some(Entry { name, bytes, modified_s: u64::try_from(stat.st_mtime).unwrap_or(0) })
}

/// Lists the directory at a decoded path, as a response.
pub(crate) fn read_page(
    finder: &Finder,
    dir: OwnedFd,
    path: &[u8],
    cursor: &Cursor,
    as_json: bool,
) -> Result<Page, Errno> {
    let stat_target = |name: &[u8]| finder.stat_target(path, name);
    let mut listing = read(dir, finder.with_dotfiles, cursor, stat_target)?;
    if !as_json && listing.is_whole() {
        cursor.order.sort(&mut listing.entries);
    }
    let listed = if as_json {
        Page { content_type: "application/json", ..Page::plain(200, to_json(&listing)) }
    } else {
        let content_type = "text/html; charset=utf-8";
        Page { content_type, ..Page::plain(200, page(path, &listing, cursor.order)) }
            .with("content-security-policy", POLICY)
    };
    Ok(listed.with("vary", "Accept").with("cache-control", "no-cache"))
}

/// Returns the listing as JSON. In names that are not UTF-8, invalid bytes are replaced.
pub(crate) fn to_json(listing: &Listing) -> String {
    let entries: Vec<Value> = listing.entries.iter().map(entry_json).collect();
    let is_cut = listing.next.is_some();
    json!({ "entries": entries, "is_cut": is_cut, "next": listing.next }).to_string()
}

fn entry_json(entry: &Entry) -> Value {
    let name = Path::new(std::ffi::OsStr::from_bytes(&entry.name)).to_string_lossy();
    let href = crate::request::path::encoded(&entry.name);
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
    fn listing_is_sorted_and_has_only_names_that_are_served() {
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
        let stat_target = |name: &[u8]| fs::stat(path(str::from_utf8(name).unwrap())).ok();
        let listing = read(open(), false, &Cursor::default(), stat_target).unwrap();
        assert_eq!(names(&listing), ["Z", "a.txt", "b.txt", "link", "zz"]);
        assert_eq!(listing.entries[1].bytes, Some(5));
        assert_eq!((listing.is_continued, listing.next), (false, None));
        let all = read(open(), true, &Cursor::default(), stat_target).unwrap();
        assert_eq!(names(&all), [".git", ".hidden", "Z", "a.txt", "b.txt", "link", "zz"]);
        let cursor = Cursor::parse(b"after=Z&limit=2").unwrap();
        let page = read(open(), false, &cursor, stat_target).unwrap();
        assert_eq!(names(&page), ["a.txt", "b.txt"]);
        assert_eq!((page.is_continued, &*page.next.unwrap()), (true, "?after=b.txt&limit=2"));
    }

    #[test]
    fn files_of_the_kernel_are_not_listed() {
        let dir = OwnedFd::from(std::fs::File::open("/proc/sys").unwrap());
        let listing = read(dir, false, &Cursor::default(), |_| None).unwrap();
        assert!(names(&listing).contains(&"kernel".to_owned()));
        let dir = OwnedFd::from(std::fs::File::open("/proc/sys/kernel").unwrap());
        let listing = read(dir, false, &Cursor::default(), |_| None).unwrap();
        assert!(!names(&listing).contains(&"ostype".to_owned()));
    }

    #[test]
    fn json_has_all_entries_and_the_next_page() {
        let entry = |name: &str, bytes| Entry { name: name.into(), bytes, modified_s: 7 };
        let entries = vec![entry("d \"x\"", None), entry("f%.txt", Some(3))];
        let next = Some("?after=x".to_owned());
        let text = to_json(&Listing { entries, is_continued: false, next });
        let parsed: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            parsed,
            json!({ "is_cut": true, "next": "?after=x", "entries": [
                { "name": "d \"x\"", "type": "directory", "href": "d%20%22x%22/", "modified_s": 7 },
                { "name": "f%.txt", "type": "file", "href": "f%25.txt", "bytes": 3, "modified_s": 7 },
            ]})
        );
    }
}
