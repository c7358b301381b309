//! Computes pages of version listings from the sorted keys.

use haul_sync::ShardedRwLock;

use crate::error::Result;
use crate::index::Index;
use crate::index::entry::Entry;
use crate::index::list::delimiter_end;
use crate::index::runs::source::Source;
use crate::index::version_rows::{Position, Sources};
use crate::object::{ListVersionsRequest, VersionInfo, VersionListEntry, VersionListPage};

/// The number of times that a listing reads a key's versions without the index lock.
const UNLOCKED_READS: usize = 4;

/// The next part of a listing: one key's versions, or the keys with a common prefix.
#[derive(Debug)]
struct Group {
    entries: Vec<VersionListEntry>,
    /// The position after the group.
    next: Position,
}

/// A listing of a bucket's versions.
struct Listing<'a, S> {
    sources: Sources<'a, S>,
    request: &'a ListVersionsRequest<'a>,
    /// The position after the last group.
    position: Position,
    /// The keys' number of changes when the sources were positioned.
    positioned_at: Option<u64>,
}

/// Returns the page of a bucket's versions that `request` describes. `current` and `older` are two
/// sources of `index`'s keys, which other threads may change. The page has each key's versions as
/// they were at one moment.
pub(crate) fn list_versions<S: Source>(
    [current, older]: &mut [S; 2],
    index: &ShardedRwLock<Index>,
    bucket: &str,
    request: &ListVersionsRequest<'_>,
) -> Result<VersionListPage> {
    let sources = Sources::new(bucket, current, older);
    let mut listing = Listing { sources, request, position: Position::Start, positioned_at: None };
    let mut page = VersionListPage::default();
    if request.limit == 0 {
        return Ok(page);
    }
    loop {
        let room = request.limit - page.entries.len();
        let Some(mut entries) = listing.next(index, room)? else { return Ok(page) };
        page.more = entries.len() > room;
        entries.truncate(room);
        page.entries.append(&mut entries);
        if page.more {
            return Ok(page);
        }
    }
}

impl<S: Source> Listing<'_, S> {
    /// Reads the next group's entries, at most `room + 1`.
    ///
    /// A key's versions are in two buckets, which are not read at once, and a change may move
    /// versions from one to the other. If the index changes meanwhile, they are read again, and
    /// finally under the index lock: a key may have more versions than can be read between two
    /// changes.
    fn next(
        &mut self,
        index: &ShardedRwLock<Index>,
        room: usize,
    ) -> Result<Option<Vec<VersionListEntry>>> {
        for _ in 0..UNLOCKED_READS {
            let changes = index.read().keys.changes();
            let group = self.read(changes, room)?;
            if index.read().keys.changes() == changes {
                return Ok(self.advance_past(group));
            }
        }
        let index = index.read();
        let group = self.read(index.keys.changes(), room)?;
        Ok(self.advance_past(group))
    }

    fn advance_past(&mut self, group: Option<Group>) -> Option<Vec<VersionListEntry>> {
        let group = group?;
        self.position = group.next;
        Some(group.entries)
    }

    /// Reads the next group as of this number of changes to the keys.
    fn read(&mut self, changes: u64, room: usize) -> Result<Option<Group>> {
        let mut listed = None;
        if self.positioned_at != Some(changes) {
            listed = self.sources.seek(&self.position, self.request)?;
            self.positioned_at = Some(changes);
        }
        let Some(key) = self.sources.next_key()? else { return Ok(None) };
        let ListVersionsRequest { prefix, delimiter, .. } = *self.request;
        let Some(rest) = key.strip_prefix(prefix) else { return Ok(None) };
        let group = match delimiter_end(rest.as_bytes(), delimiter) {
            Some(end) => self.fold(&key[..prefix.len() + end]),
            None => self.versions_of(&key, listed != Some(&*key), room),
        };
        group.map(Some)
    }

    fn fold(&mut self, prefix: &str) -> Result<Group> {
        let next = Position::AfterPrefix(prefix.to_owned());
        self.sources.seek(&next, self.request)?;
        let is_listed = self.request.after.is_some_and(|after| prefix <= after);
        let entry = (!is_listed).then(|| VersionListEntry::Prefix(prefix.to_owned()));
        Ok(Group { entries: entry.into_iter().collect(), next })
    }

    /// Reads versions of the next key. The first one is the newest version if `has_latest` is
    /// `true`.
    fn versions_of(&mut self, key: &str, has_latest: bool, room: usize) -> Result<Group> {
        let mut entries = Vec::new();
        let mut push = |entry: &Entry, is_delete_marker| {
            let is_latest = has_latest && entries.is_empty();
            let info = entry.info(key);
            let version = VersionInfo { info, is_latest, is_delete_marker };
            entries.push(VersionListEntry::Version(version));
            entries.len() <= room
        };
        let current = self.sources.take_current(key)?;
        let mut has_room = current.as_ref().is_none_or(|current| push(current, false));
        while has_room && let Some(row) = self.sources.take_older(key)? {
            if !current.as_ref().is_some_and(|current| row.is_copy_of(current)) {
                has_room = push(&row.entry, row.entry.is_delete_marker());
            }
        }
        Ok(Group { entries, next: Position::AfterKey(key.to_owned()) })
    }
}
