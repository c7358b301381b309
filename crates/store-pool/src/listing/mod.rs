//! Listings of objects, versions and uploads: the members' listings, merged. While a listing waits
//! for one member, it is not counted as a call of the others.

mod merge;

use std::cmp::Ordering;
use std::time::SystemTime;

use haul_file_store::{
    ListEntry, ListPage, ListRequest, ListUploadsRequest, ListVersionsRequest, Result,
    UploadListEntry, UploadListPage, VersionId, VersionInfo, VersionListEntry, VersionListPage,
};

use crate::listing::merge::{Page, merge};
use crate::member::Member;

/// Lists objects in all members. `donors` is as in [`merge`].
///
/// # Errors
/// The first error of a member.
pub(crate) fn objects(
    members: &[Member],
    donors: &[bool],
    bucket: &str,
    request: &ListRequest<'_>,
) -> Result<ListPage> {
    let compare = |one: &ListEntry, other: &ListEntry| one.name().cmp(other.name());
    let read = |member: usize, last: Option<&ListEntry>, limit| {
        let after = last.map(ListEntry::name).or(request.after);
        let part = ListRequest { after, limit, ..*request };
        let page = members[member].read(|store| store.list(bucket, &part))?;
        Ok(Page { entries: page.entries, more: page.more })
    };
    let Page { entries, more } = merge(donors, request.limit, compare, read)?;
    Ok(ListPage { entries, more })
}

/// Lists versions in all members. `donors` is as in [`merge`].
///
/// # Errors
/// The first error of a member.
pub(crate) fn versions(
    members: &[Member],
    donors: &[bool],
    bucket: &str,
    request: &ListVersionsRequest<'_>,
) -> Result<VersionListPage> {
    let read = |member: usize, last: Option<&VersionListEntry>, limit| {
        let mut part = ListVersionsRequest { limit, ..request.clone() };
        match last {
            Some(VersionListEntry::Version(version)) => {
                part.after = Some(&version.info.key);
                part.after_version = Some(version.info.version_id);
            }
            Some(VersionListEntry::Prefix(prefix)) => {
                part.after = Some(prefix);
                part.after_version = None;
            }
            None => {}
        }
        let page = members[member].read(|store| store.list_versions(bucket, &part))?;
        Ok(Page { entries: page.entries, more: page.more })
    };
    let Page { entries, more } = merge(donors, request.limit, by_age, read)?;
    Ok(VersionListPage { entries: with_one_latest(with_one_null(entries)), more })
}

/// Lists uploads in all members. `donors` is as in [`merge`].
///
/// # Errors
/// The first error of a member.
pub(crate) fn uploads(
    members: &[Member],
    donors: &[bool],
    bucket: &str,
    request: &ListUploadsRequest<'_>,
) -> Result<UploadListPage> {
    let read = |member: usize, last: Option<&UploadListEntry>, limit| {
        let mut part = ListUploadsRequest { limit, ..request.clone() };
        match last {
            Some(UploadListEntry::Upload { key, id }) => {
                part.after = Some(key);
                part.after_upload = Some(id);
            }
            Some(UploadListEntry::Prefix(prefix)) => {
                part.after = Some(prefix);
                part.after_upload = None;
            }
            None => {}
        }
        let page = members[member].read(|store| store.list_uploads(bucket, &part))?;
        Ok(Page { entries: page.entries, more: page.more })
    };
    let Page { entries, more } = merge(donors, request.limit, by_id, read)?;
    Ok(UploadListPage { entries, more })
}

/// Orders versions by key, and each key's versions from the newest to the oldest. A key whose slot
/// is being moved can be in two members.
fn by_age(one: &VersionListEntry, other: &VersionListEntry) -> Ordering {
    use VersionListEntry::Version;
    name(one).cmp(name(other)).then_with(|| match (one, other) {
        (Version(one), Version(other)) => age(other).cmp(&age(one)),
        _ => Ordering::Equal,
    })
}

fn name(entry: &VersionListEntry) -> &str {
    match entry {
        VersionListEntry::Version(version) => &version.info.key,
        VersionListEntry::Prefix(prefix) => prefix,
    }
}

/// Returns what orders the versions of a key. A version without an ID has only a time.
fn age(version: &VersionInfo) -> (SystemTime, u64) {
    let number = match version.info.version_id {
        VersionId::Null => 0,
        VersionId::Id(id) => id,
    };
    (version.info.modified, number)
}

/// Leaves the newest version `null` of each key. One that was replaced between two reads of the
/// listing is in both.
fn with_one_null(mut entries: Vec<VersionListEntry>) -> Vec<VersionListEntry> {
    let mut last = None::<String>;
    entries.retain(|entry| match entry {
        VersionListEntry::Version(version) if version.info.version_id == VersionId::Null => {
            let is_first = last.as_ref() != Some(&version.info.key);
            last = Some(version.info.key.clone());
            is_first
        }
        _ => true,
    });
    entries
}

/// Leaves one latest version of each key. While a key is being moved, the newest one that has
/// arrived is the latest in its member.
fn with_one_latest(mut entries: Vec<VersionListEntry>) -> Vec<VersionListEntry> {
    for number in 1..entries.len() {
        let (before, rest) = entries.split_at_mut(number);
        if let (VersionListEntry::Version(newer), VersionListEntry::Version(older)) =
            (&before[number - 1], &mut rest[0])
        {
            older.is_latest &= newer.info.key != older.info.key;
        }
    }
    entries
}

/// Orders uploads by key, and each key's uploads by their IDs.
fn by_id(one: &UploadListEntry, other: &UploadListEntry) -> Ordering {
    let name = |entry: &UploadListEntry| match entry {
        UploadListEntry::Upload { key, id } => (key.clone(), id.clone()),
        UploadListEntry::Prefix(prefix) => (prefix.clone(), String::new()),
    };
    name(one).cmp(&name(other))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use haul_file_store::{Etag, ObjectInfo};

    use super::*;

    fn version(key: &str, seconds: u64, version_id: VersionId) -> VersionListEntry {
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let etag = Etag { md5: [0; 16], parts: 0 };
        let info = ObjectInfo { key: key.to_owned(), bytes: seconds, modified, etag, version_id };
        VersionListEntry::Version(VersionInfo { info, is_latest: true, is_delete_marker: false })
    }

    #[test]
    fn version_null_that_was_replaced_meanwhile_is_listed_once() {
        let (null, id) = (VersionId::Null, VersionId::Id(1));
        let read = [("a", 5, null), ("a", 4, id), ("a", 3, null), ("b", 3, null)];
        let entries = read.map(|(key, seconds, id)| version(key, seconds, id)).to_vec();
        let listed = with_one_latest(with_one_null(entries.clone()));
        assert_eq!(listed.len(), 3);
        assert_eq!((&listed[0], &listed[2]), (&entries[0], &entries[3]));
        let latest = |entry: &VersionListEntry| match entry {
            VersionListEntry::Version(version) => version.is_latest,
            VersionListEntry::Prefix(_) => false,
        };
        assert_eq!(listed.iter().map(latest).collect::<Vec<_>>(), [true, false, true]);
    }
}
