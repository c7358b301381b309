//! What is in a directory, as a page or as JSON.

mod cursor;
mod page;
mod shared;
mod smallest;

use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{self, AtFlags, FileType, Stat};
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::answer::Page;
use crate::find::Finder;
pub(crate) use cursor::Cursor;
use page::{POLICY, page};
pub(crate) use shared::{Listed, ListingKey, Listings};
use smallest::SmallestNames;

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: Vec<u8>,
    /// Of a file, its bytes; a directory has none.
    pub(crate) bytes: Option<u64>,
    pub(crate) modified_s: u64,
}

/// One page of the listing of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listing {
    /// In bytewise order of the names.
    pub(crate) entries: Vec<Entry>,
    /// `true` if this is the page after another one.
    pub(crate) is_continued: bool,
    /// The reference to the next page, if there are more names.
    pub(crate) next: Option<String>,
}

/// Reads a page of a directory. Names that the server would not serve are left out: special files,
/// hidden names, and links out of the root. `followed` returns the status of the target of a link.
///
/// All names are read, but only those of the page are kept in memory, and only their status is read.
/// A name that exists during all requests is on exactly one page, even if other names are added or
/// removed in between.
pub(crate) fn read(
    dir: OwnedFd,
    with_dotfiles: bool,
    cursor: &Cursor,
    followed: impl Fn(&[u8]) -> Option<Stat>,
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
    let entries = names.into_iter().filter_map(|name| entry(fd, name, &followed)).collect();
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
    followed: &impl Fn(&[u8]) -> Option<Stat>,
) -> Option<Entry> {
    let stat = fs::statat(dir, &*name, AtFlags::SYMLINK_NOFOLLOW).ok();
    let is_link = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
    let stat = if stat.as_ref().is_some_and(is_link) { followed(&name) } else { stat }?;
    let bytes = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Some(u64::try_from(stat.st_size).unwrap_or(0)),
        FileType::Directory => None,
        _ => return None,
    };
    Some(Entry { name, bytes, modified_s: u64::try_from(stat.st_mtime).unwrap_or(0) })
}

/// Lists the directory at a decoded path, as a response.
fn read_page(
    finder: &Finder,
    dir: OwnedFd,
    path: &[u8],
    cursor: &Cursor,
    as_json: bool,
) -> Result<Page, Errno> {
    let followed = |name: &[u8]| finder.followed(path, name);
    let listing = read(dir, finder.with_dotfiles, cursor, followed)?;
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
    let is_cut = listing.next.is_some();
    json!({ "entries": entries, "is_cut": is_cut, "next": listing.next }).to_string()
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
        let listing = read(open(), false, &Cursor::default(), followed).unwrap();
        assert_eq!(names(&listing), ["Z", "a.txt", "b.txt", "link", "zz"]);
        assert_eq!(listing.entries[1].bytes, Some(5));
        assert_eq!((listing.is_continued, listing.next), (false, None));
        let all = read(open(), true, &Cursor::default(), followed).unwrap();
        assert_eq!(names(&all), [".git", ".hidden", "Z", "a.txt", "b.txt", "link", "zz"]);
        let cursor = Cursor::parse(b"after=Z&limit=2").unwrap();
        let page = read(open(), false, &cursor, followed).unwrap();
        assert_eq!(names(&page), ["a.txt", "b.txt"]);
        assert_eq!((page.is_continued, &*page.next.unwrap()), (true, "?after=b.txt&limit=2"));
    }

    #[test]
    fn programs_get_json() {
        let entry = |name: &str, bytes| Entry { name: name.into(), bytes, modified_s: 7 };
        let entries = vec![entry("d \"x\"", None), entry("f%.txt", Some(3))];
        let next = Some("?after=x".to_owned());
        let text = to_json(&Listing { entries, is_continued: false, next });
        let told: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            told,
            json!({ "is_cut": true, "next": "?after=x", "entries": [
                { "name": "d \"x\"", "type": "directory", "href": "d%20%22x%22/", "modified_s": 7 },
                { "name": "f%.txt", "type": "file", "href": "f%25.txt", "bytes": 3, "modified_s": 7 },
            ]})
        );
    }
}
