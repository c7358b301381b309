//! Computes a page of an upload listing from the uploads' sorted names.

use crate::index::entry::full_key;
use crate::index::list::{delimiter_end, successor};
use crate::index::uploads::{UploadName, Uploads, parse, print};

/// The parameters of an upload listing.
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

/// An entry in an upload listing.
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

/// A page of an upload listing, in the byte order of the keys. A key's uploads are in the order of
/// their IDs, which is the order in which they were started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UploadListPage {
    /// The entries.
    pub entries: Vec<UploadListEntry>,
    /// `true` if the listing continues: list again after the last entry.
    pub more: bool,
}

/// Returns the page of a bucket's uploads that `request` describes. Costs one seek, one more for
/// each common prefix, and a visit of each upload on the page.
pub(crate) fn list(
    uploads: &Uploads,
    bucket: &str,
    request: &ListUploadsRequest<'_>,
) -> UploadListPage {
    page(bucket, request, |from| uploads.range(from..).map(|(name, _)| name))
}

/// Returns a page from the sorted names that `seek` returns, which start at the given name.
fn page<'a, I: Iterator<Item = &'a UploadName>>(
    bucket: &str,
    request: &ListUploadsRequest<'_>,
    seek: impl Fn(UploadName) -> I,
) -> UploadListPage {
    let mut page = UploadListPage::default();
    if request.limit == 0 {
        return page;
    }
    let start = full_key(bucket, request.prefix);
    let mut rest = seek(request.first(bucket));
    while let Some(name) = rest.next() {
        let Some(behind) = name.full_key.strip_prefix(&*start) else { break };
        let key = name.key();
        let folded = delimiter_end(behind, request.delimiter)
            .and_then(|end| key.get(..request.prefix.len() + end));
        let is_listed = match folded {
            Some(folded) => request.after.is_none_or(|after| folded > after),
            None => !request.is_marker_or_before(key, name.id),
        };
        if is_listed && page.entries.len() == request.limit {
            page.more = true;
            break;
        }
        let entry = match folded {
            Some(folded) => {
                let Some(next) = successor(&full_key(bucket, folded)) else { break };
                rest = seek(UploadName { full_key: next.into(), id: 0 });
                UploadListEntry::Prefix(folded.to_owned())
            }
            None => UploadListEntry::Upload { key: key.to_owned(), id: print(name.id) },
        };
        page.entries.extend(is_listed.then_some(entry));
    }
    page
}

impl ListUploadsRequest<'_> {
    /// Returns the first name that the listing reads. The markers may exclude a few uploads after
    /// it.
    fn first(&self, bucket: &str) -> UploadName {
        match (self.after.filter(|after| *after >= self.prefix), self.after_upload) {
            (None, _) => UploadName::new(bucket, self.prefix, 0),
            (Some(after), Some(upload)) => {
                UploadName::new(bucket, after, parse(upload).unwrap_or(0))
            }
            (Some(after), None) => {
                let mut next = full_key(bucket, after);
                next.push(0);
                UploadName { full_key: next.into(), id: 0 }
            }
        }
    }

    /// Returns `true` if the markers exclude an upload at or after [`Self::first`].
    fn is_marker_or_before(&self, key: &str, id: u128) -> bool {
        self.after == Some(key) && self.after_upload.is_some_and(|upload| *print(id) <= *upload)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;
    use crate::index::uploads::Upload;

    const BUCKET: &str = "bucket";

    const KEYS: [&str; 6] = ["c", "b/y", "a", "b/x", "a", "ä/z"];

    /// Returns a bucket's uploads, whose IDs are their positions, between other buckets' uploads.
    fn uploads<S: AsRef<str>>(keys: &[S]) -> Uploads {
        let others = ["buckes", "bucket.1", "buckeu"].map(|other| UploadName::new(other, "a", 1));
        let name = |(id, key): (u128, &S)| UploadName::new(BUCKET, key.as_ref(), id);
        let names = (0..).zip(keys).map(name).chain(others);
        names.map(|name| (name, Upload::default())).collect()
    }

    /// Returns a page, and the number of names visited to compute it.
    fn visits(uploads: &Uploads, request: &ListUploadsRequest<'_>) -> (UploadListPage, usize) {
        let visits = Cell::new(0);
        let seek = |from| {
            let names = uploads.range(from..).map(|(name, _)| name);
            names.inspect(|_| visits.set(visits.get() + 1))
        };
        let counted = super::page(BUCKET, request, seek);
        assert_eq!(counted, list(uploads, BUCKET, request));
        (counted, visits.get())
    }

    fn page(request: &ListUploadsRequest<'_>) -> UploadListPage {
        visits(&uploads(&KEYS), request).0
    }

    /// Returns the entries' names and IDs.
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

    #[test]
    fn page_visits_its_own_uploads() {
        let key = |n: usize| format!("{}/{:04}", ["a", "b", "c"][n % 3], n / 6);
        // Pairs of uploads to the same key: 1000 below each of the prefixes.
        let keys: Vec<String> = (0..3000).map(key).collect();
        let uploads = uploads(&keys);
        let page = ListUploadsRequest { limit: 10, ..ListUploadsRequest::default() };
        let (last, id) = (key(2995), print(2998));
        for (request, entries, more) in [
            (page.clone(), 10, true),
            (ListUploadsRequest { prefix: "b/", ..page.clone() }, 10, true),
            (ListUploadsRequest { prefix: "c/0499", ..page.clone() }, 2, false),
            (ListUploadsRequest { prefix: "d", ..page.clone() }, 0, false),
            (ListUploadsRequest { delimiter: Some("/"), ..page.clone() }, 3, false),
            (ListUploadsRequest { delimiter: Some("/"), limit: 2, ..page.clone() }, 2, true),
            (ListUploadsRequest { after: Some("b/"), ..page.clone() }, 10, true),
            (
                ListUploadsRequest { after: Some("b/"), delimiter: Some("/"), ..page.clone() },
                1,
                false,
            ),
            (
                ListUploadsRequest { after: Some(&last), after_upload: Some(&id), ..page.clone() },
                10,
                true,
            ),
        ] {
            let (page, visits) = visits(&uploads, &request);
            assert_eq!((page.entries.len(), page.more), (entries, more), "{request:?}");
            // One more ends the page, and a marker and the rest of its group may precede it.
            assert!(visits <= entries + 2, "{visits} visits for {request:?}");
        }
    }

    #[test]
    fn page_behind_an_upload_visits_no_earlier_one_to_its_key() {
        let uploads = uploads(&["key"; 1000]);
        let id = print(990);
        let (after, after_upload) = (Some("key"), Some(&*id));
        let request =
            ListUploadsRequest { after, after_upload, limit: 10, ..ListUploadsRequest::default() };
        let (page, visits) = visits(&uploads, &request);
        assert_eq!((page.entries.len(), page.more), (9, false));
        assert!(visits <= 11, "{visits} visits");
    }

    #[test]
    fn upload_that_ended_between_pages_is_skipped() {
        let mut uploads = uploads(&["a", "b", "b", "b", "c"]);
        let id = print(2);
        let (after, after_upload) = (Some("b"), Some(&*id));
        let request =
            ListUploadsRequest { after, after_upload, limit: 1, ..ListUploadsRequest::default() };
        let third = vec![("b".to_owned(), Some(print(3)))];
        for ended in [2, 1] {
            uploads.remove(&UploadName::new(BUCKET, "b", ended)).unwrap();
            let page = list(&uploads, BUCKET, &request);
            assert_eq!((page.more, shown(page)), (true, third.clone()), "without {ended}");
        }
        uploads.remove(&UploadName::new(BUCKET, "b", 3)).unwrap();
        let page = list(&uploads, BUCKET, &request);
        assert_eq!((page.more, shown(page)), (false, vec![("c".to_owned(), Some(print(4)))]));
    }

    /// A simple implementation: folds all keys, sorts the names, and truncates the list.
    fn plain(keys: &[String], request: &ListUploadsRequest<'_>) -> UploadListPage {
        let fold = |(id, key): (u128, &String)| {
            let rest = key.strip_prefix(request.prefix)?;
            let end = request.delimiter.and_then(|it| rest.find(it).map(|at| at + it.len()));
            let folded = end.map(|end| key[..request.prefix.len() + end].to_owned());
            let id = folded.is_none().then(|| print(id));
            Some((folded.unwrap_or_else(|| key.clone()), id))
        };
        let is_behind = |(name, id): &(String, Option<String>)| match request.after {
            Some(after) if name == after && id.is_some() => {
                request.after_upload.is_some_and(|upload| id.as_deref() > Some(upload))
            }
            after => after.is_none_or(|after| &**name > after),
        };
        let mut places: Vec<_> = (0..).zip(keys).filter_map(fold).filter(is_behind).collect();
        places.sort();
        places.dedup();
        let more = request.limit > 0 && places.len() > request.limit;
        places.truncate(request.limit);
        let entry = |(name, id): (String, Option<String>)| match id {
            Some(id) => UploadListEntry::Upload { key: name, id },
            None => UploadListEntry::Prefix(name),
        };
        UploadListPage { entries: places.into_iter().map(entry).collect(), more }
    }

    proptest! {
        #[test]
        fn page_equals_that_of_a_plain_sort(
            keys in prop::collection::vec("[ab/\0\u{d7ff}\u{10ffff}]{1,3}", 0..12),
            prefix in "[ab/]{0,2}",
            delimiter in prop::option::of("[/b]{1,2}"),
            after in prop::option::of("[ab/\0]{0,3}"),
            after_upload in prop::option::of(prop_oneof![
                "[0-9a-z]{0,2}",
                (0_u128..12).prop_map(print),
            ]),
            limit in 0_usize..6,
        ) {
            let request = ListUploadsRequest {
                prefix: &prefix,
                delimiter: delimiter.as_deref(),
                after: after.as_deref(),
                after_upload: after_upload.as_deref(),
                limit,
            };
            prop_assert_eq!(visits(&uploads(&keys), &request).0, plain(&keys, &request));
        }
    }
}
