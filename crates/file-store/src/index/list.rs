//! A page of a listing, computed from the sorted keys.

use crate::error::Result;
use crate::index::entry::{Entry, full_key};
use crate::index::keys::not_an_entry;
use crate::index::runs::source::Source;
use crate::object::{ListEntry, ListPage, ListRequest};

/// Returns the page of a bucket's keys that `request` describes. Costs one seek, and one more for
/// each common prefix.
pub(crate) fn list(
    keys: &mut impl Source,
    bucket: &str,
    request: &ListRequest<'_>,
) -> Result<ListPage> {
    let mut page = ListPage::default();
    if request.limit == 0 {
        return Ok(page);
    }
    let after = request.after.unwrap_or("");
    let start = full_key(bucket, request.prefix);
    if after < request.prefix {
        keys.seek(&start)?;
    } else {
        let mut from = full_key(bucket, after);
        from.push(0);
        keys.seek(&from)?;
    }
    while let Some((name, value)) = keys.key().zip(keys.value()) {
        let Some(rest) = name.strip_prefix(&*start) else { break };
        let key = &name[bucket.len() + 1..];
        let folded =
            delimiter_end(rest, request.delimiter).map(|end| &key[..key.len() - rest.len() + end]);
        let is_skipped = folded.is_some_and(|folded| folded <= after.as_bytes());
        if !is_skipped && page.entries.len() == request.limit {
            page.more = true;
            break;
        }
        match folded {
            None => {
                let entry = Entry::decode(value).ok_or_else(not_an_entry)?;
                page.entries.push(ListEntry::Object(entry.info(text(key)?)));
                keys.advance()?;
            }
            Some(folded) => {
                if !is_skipped {
                    page.entries.push(ListEntry::Prefix(text(folded)?.to_owned()));
                }
                let Some(next) = successor(&name[..bucket.len() + 1 + folded.len()]) else { break };
                keys.seek(&next)?;
            }
        }
    }
    Ok(page)
}

/// Returns the end of the first delimiter in `rest`.
pub(super) fn delimiter_end(rest: &[u8], delimiter: Option<&str>) -> Option<usize> {
    let delimiter = delimiter.filter(|delimiter| !delimiter.is_empty())?.as_bytes();
    let at = rest.windows(delimiter.len()).position(|window| window == delimiter)?;
    Some(at + delimiter.len())
}

pub(super) fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_not_utf8| not_an_entry())
}

/// Returns the smallest name that is greater than every name with this prefix.
pub(super) fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut next = prefix[..=kept].to_vec();
    next[kept] += 1;
    Some(next)
}

#[cfg(test)]
mod tests {
    use haul_append_log::{Lsn, Position};
    use proptest::prelude::*;

    use super::*;
    use crate::clock::Version;
    use crate::index::runs::source::SliceSource;
    use crate::object::Etag;

    const BUCKET: &str = "bucket";

    /// Returns the page of a bucket with these keys, between two other buckets.
    fn list<S: AsRef<str>>(keys: &[S], request: &ListRequest<'_>) -> ListPage {
        let entry = Entry {
            is_versioned: false,
            version: Version(1),
            at: Position { lsn: Lsn::new(1, 4096), payload_bytes: 1 },
            bytes: 1,
            etag: Etag { md5: [0; 16], parts: 0 },
            files: Box::default(),
        };
        let mut names = vec![full_key("buckes", "zz"), full_key("bucket.1", "a")];
        names.extend(keys.iter().map(|key| full_key(BUCKET, key.as_ref())));
        names.sort();
        names.dedup();
        let entries: Vec<_> = names.into_iter().map(|name| (name, Some(entry.encode()))).collect();
        super::list(&mut SliceSource::new(&entries), BUCKET, request).unwrap()
    }

    fn names(page: &ListPage) -> Vec<&str> {
        page.entries.iter().map(ListEntry::name).collect()
    }

    #[test]
    fn keys_are_folded_at_the_delimiter() {
        let objects = ["a", "b/1", "b/2", "b/c/3", "c", "d/"];
        let request = ListRequest { delimiter: Some("/"), limit: 10, ..ListRequest::default() };
        assert_eq!(names(&list(&objects, &request)), ["a", "b/", "c", "d/"]);
        let inside = ListRequest { prefix: "b/", ..request };
        assert_eq!(names(&list(&objects, &inside)), ["b/1", "b/2", "b/c/"]);
        let page = list(&objects, &ListRequest { limit: 2, ..inside });
        assert_eq!((names(&page), page.more), (vec!["b/1", "b/2"], true));
        let none = list(&objects, &ListRequest { limit: 0, ..inside });
        assert_eq!((none.entries.len(), none.more), (0, false));
    }

    /// A simple implementation: folds all keys, sorts them, and truncates the list.
    fn plain(keys: &[String], request: &ListRequest<'_>) -> ListPage {
        let mut entries: Vec<String> = keys
            .iter()
            .filter(|key| key.starts_with(request.prefix))
            .map(|key| match request.delimiter {
                Some(delimiter) => match key[request.prefix.len()..].find(delimiter) {
                    Some(at) => key[..request.prefix.len() + at + delimiter.len()].to_owned(),
                    None => key.clone(),
                },
                None => key.clone(),
            })
            .filter(|line| line.as_str() > request.after.unwrap_or(""))
            .collect();
        entries.sort();
        entries.dedup();
        let more = entries.len() > request.limit && request.limit > 0;
        entries.truncate(request.limit);
        ListPage { entries: entries.into_iter().map(ListEntry::Prefix).collect(), more }
    }

    proptest! {
        #[test]
        fn page_equals_that_of_a_plain_sort(
            keys in prop::collection::vec("[ab/\u{d7ff}\u{10ffff}]{1,5}", 0..12),
            prefix in "[ab/]{0,2}",
            delimiter in prop::option::of("[/b]{1,2}"),
            after in prop::option::of("[ab/]{0,4}"),
            limit in 0_usize..6,
        ) {
            let request = ListRequest {
                prefix: &prefix,
                delimiter: delimiter.as_deref(),
                after: after.as_deref(),
                limit,
            };
            let page = list(&keys, &request);
            let plain = plain(&keys, &request);
            prop_assert_eq!((names(&page), page.more), (names(&plain), plain.more));
        }
    }
}
