//! Uploads in the index, and listings of them. Pure.

use std::collections::{BTreeMap, BTreeSet};

use haul_append_log::Position;

use crate::clock::Version;
use crate::index::entry::Entry;

/// An upload that is neither completed nor aborted.
#[derive(Debug, Default)]
pub(crate) struct Upload {
    pub(crate) bucket: String,
    pub(crate) key: String,
    pub(crate) started: Version,
    /// The position of its needle; `None` if that was lost to damage.
    pub(crate) at: Option<Position>,
    pub(crate) parts: BTreeMap<u16, Entry>,
}

/// The parameters of a listing of uploads.
#[derive(Debug, Clone, Default)]
pub struct ListUploadsRequest<'a> {
    /// Lists only uploads to keys with this prefix.
    pub prefix: &'a str,
    /// Keys that contain the delimiter after the prefix are combined to one
    /// [`UploadListEntry::Prefix`].
    pub delimiter: Option<&'a str>,
    /// Lists only keys and common prefixes after this name.
    pub after: Option<&'a str>,
    /// Also lists the uploads to the key in `after` whose IDs are greater than this one.
    pub after_upload: Option<&'a str>,
    /// The maximum number of uploads and common prefixes.
    pub limit: usize,
}

/// An entry of a listing of uploads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UploadListEntry {
    /// An upload that is neither completed nor aborted.
    Upload {
        /// The key.
        key: String,
        /// The ID.
        id: String,
    },
    /// A common prefix: all keys that start with it. It ends with the delimiter.
    Prefix(String),
}

/// A page of a listing of uploads, in the byte order of the keys, and of the IDs of a key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UploadListPage {
    /// The entries.
    pub entries: Vec<UploadListEntry>,
    /// `true` if the listing continues: list again after the last entry.
    pub more: bool,
}

/// A place in a listing: a key and the ID of an upload, or a common prefix without an ID.
type Place<'a> = (&'a str, Option<u128>);

/// Returns the page of a bucket's uploads that `request` describes. Passes over all uploads once,
/// in any order, and holds no more than the entries of the page.
pub(crate) fn list<'a>(
    uploads: impl Iterator<Item = (u128, &'a Upload)>,
    request: &ListUploadsRequest<'_>,
) -> UploadListPage {
    if request.limit == 0 {
        return UploadListPage::default();
    }
    let mut places = BTreeSet::new();
    let mut more = false;
    for place in uploads.filter_map(|(id, upload)| request.place(&upload.key, id)) {
        places.insert(place);
        if places.len() > request.limit {
            places.pop_last();
            more = true;
        }
    }
    let entry = |(name, id): Place<'_>| match id {
        Some(id) => UploadListEntry::Upload { key: name.to_owned(), id: print(id) },
        None => UploadListEntry::Prefix(name.to_owned()),
    };
    UploadListPage { entries: places.into_iter().map(entry).collect(), more }
}

impl ListUploadsRequest<'_> {
    /// Returns the place of an upload; `None` if the listing does not have it.
    fn place<'k>(&self, key: &'k str, id: u128) -> Option<Place<'k>> {
        let rest = key.strip_prefix(self.prefix)?;
        let delimiter = self.delimiter.filter(|delimiter| !delimiter.is_empty());
        let folded = delimiter.and_then(|delimiter| {
            let end = rest.find(delimiter)? + delimiter.len();
            key.get(..self.prefix.len() + end)
        });
        let name = folded.unwrap_or(key);
        let is_past = match (self.after, self.after_upload) {
            (None, _) => false,
            (Some(after), Some(upload)) if folded.is_none() && name == after => {
                *print(id) <= *upload
            }
            (Some(after), _) => name <= after,
        };
        (!is_past).then_some((name, folded.is_none().then_some(id)))
    }
}

/// Returns an ID as callers see it. The order of the texts is that of the numbers.
pub(crate) fn print(id: u128) -> String {
    format!("{id:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 6] = ["c", "b/y", "a", "b/x", "a", "ä/z"];

    fn page(request: &ListUploadsRequest<'_>) -> UploadListPage {
        let uploads = KEYS.map(|key| Upload { key: key.to_owned(), ..Upload::default() });
        list((0..).zip(&uploads), request)
    }

    /// Returns the names and the IDs of the entries.
    fn shown(page: UploadListPage) -> Vec<(String, Option<String>)> {
        let shown = |entry| match entry {
            UploadListEntry::Upload { key, id } => (key, Some(id)),
            UploadListEntry::Prefix(prefix) => (prefix, None),
        };
        page.entries.into_iter().map(shown).collect()
    }

    #[test]
    fn pages_of_any_size_list_every_entry_once_in_order() {
        let upload = |key: &str, id| (key.to_owned(), Some(print(id)));
        let prefix = |prefix: &str| (prefix.to_owned(), None);
        let flat = ["a", "a", "b/x", "b/y", "c", "ä/z"];
        let flat: Vec<_> = flat.into_iter().zip([2, 4, 3, 1, 0, 5]).collect();
        let flat: Vec<_> = flat.into_iter().map(|(key, id)| upload(key, id)).collect();
        let folded =
            vec![upload("a", 2), upload("a", 4), prefix("b/"), upload("c", 0), prefix("ä/")];
        for (delimiter, expected) in [(None, flat.clone()), (Some(""), flat), (Some("/"), folded)] {
            for limit in 1..8 {
                let mut seen: Vec<(String, Option<String>)> = Vec::new();
                loop {
                    let last = seen.last().cloned();
                    let after = last.as_ref().map(|(name, _)| name.as_str());
                    let after_upload = last.as_ref().and_then(|(_, id)| id.as_deref());
                    let request = ListUploadsRequest {
                        delimiter,
                        after,
                        after_upload,
                        limit,
                        ..ListUploadsRequest::default()
                    };
                    let page = page(&request);
                    assert!(page.entries.len() == limit || !page.more, "{limit}: {page:?}");
                    let more = page.more;
                    seen.extend(shown(page));
                    if !more {
                        break;
                    }
                }
                assert_eq!(seen, expected, "{delimiter:?}, {limit}");
            }
        }
    }

    #[test]
    fn prefix_and_markers_restrict_the_listing() {
        let all = ListUploadsRequest { limit: usize::MAX, ..ListUploadsRequest::default() };
        for (request, expected) in [
            (ListUploadsRequest { prefix: "b/", ..all.clone() }, vec![3, 1]),
            (ListUploadsRequest { prefix: "b/", after: Some("b/x"), ..all.clone() }, vec![1]),
            (ListUploadsRequest { after: Some("a"), ..all.clone() }, vec![3, 1, 0, 5]),
            (
                ListUploadsRequest { after: Some("a"), after_upload: Some("z"), ..all.clone() },
                vec![3, 1, 0, 5],
            ),
            (
                ListUploadsRequest { after: Some("a"), after_upload: Some(""), ..all.clone() },
                vec![2, 4, 3, 1, 0, 5],
            ),
            (ListUploadsRequest { limit: 0, ..all }, vec![]),
        ] {
            let page = page(&request);
            assert!(!page.more);
            let expected: Vec<_> = expected.into_iter().map(|id| Some(print(id))).collect();
            let ids: Vec<_> = shown(page).into_iter().map(|(_, id)| id).collect();
            assert_eq!(ids, expected, "{request:?}");
        }
    }
}
