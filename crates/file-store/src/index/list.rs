//! One page of a listing, from the index alone. Pure.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::index::Entry;
use crate::object::{ListPage, ListRequest, Listed};

/// The page `request` asks for. Costs a look-up for the page and one for each folded prefix.
pub(crate) fn list(objects: &BTreeMap<Box<str>, Entry>, request: &ListRequest<'_>) -> ListPage {
    let mut page = ListPage::default();
    if request.limit == 0 {
        return page;
    }
    let after = request.after.unwrap_or("");
    let mut from = if after < request.prefix {
        Bound::Included(request.prefix.to_owned())
    } else {
        Bound::Excluded(after.to_owned())
    };
    'seek: loop {
        let from_str = from.as_ref().map(String::as_str);
        for (key, entry) in objects.range::<str, _>((from_str, Bound::Unbounded)) {
            let Some(rest) = key.strip_prefix(request.prefix) else { return page };
            let folded =
                request.delimiter.filter(|delimiter| !delimiter.is_empty()).and_then(|delimiter| {
                    rest.find(delimiter).map(|at| request.prefix.len() + at + delimiter.len())
                });
            let skipped = folded.is_some_and(|end| key[..end] <= *after);
            if !skipped {
                if page.lines.len() == request.limit {
                    page.more = true;
                    return page;
                }
                page.lines.push(match folded {
                    Some(end) => Listed::Prefix(key[..end].to_owned()),
                    None => Listed::Object(entry.info(key)),
                });
            }
            if let Some(end) = folded {
                match successor(&key[..end]) {
                    Some(next) => from = Bound::Included(next),
                    None => return page,
                }
                continue 'seek;
            }
        }
        return page;
    }
}

/// The least text that is greater than every text beginning with `prefix`.
fn successor(prefix: &str) -> Option<String> {
    let mut text = prefix.to_owned();
    while let Some(last) = text.pop() {
        // The characters between D800 and DFFF do not exist.
        let next =
            if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(last as u32 + 1) };
        if let Some(next) = next {
            text.push(next);
            return Some(text);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use haul_append_log::{Lsn, Position};
    use proptest::prelude::*;

    use super::*;
    use crate::clock::Version;
    use crate::object::Etag;

    fn objects<S: AsRef<str>>(keys: &[S]) -> BTreeMap<Box<str>, Entry> {
        let entry = Entry {
            version: Version(1),
            at: Position { lsn: Lsn::new(1, 4096), payload_bytes: 1 },
            bytes: 1,
            etag: Etag { md5: [0; 16], parts: 0 },
            files: Box::default(),
        };
        keys.iter().map(|key| (key.as_ref().into(), entry.clone())).collect()
    }

    fn names(page: &ListPage) -> Vec<&str> {
        page.lines.iter().map(Listed::name).collect()
    }

    #[test]
    fn keys_are_folded_at_the_delimiter() {
        let objects = objects(&["a", "b/1", "b/2", "b/c/3", "c", "d/"]);
        let request = ListRequest { delimiter: Some("/"), limit: 10, ..ListRequest::default() };
        assert_eq!(names(&list(&objects, &request)), ["a", "b/", "c", "d/"]);
        let inside = ListRequest { prefix: "b/", ..request };
        assert_eq!(names(&list(&objects, &inside)), ["b/1", "b/2", "b/c/"]);
        let page = list(&objects, &ListRequest { limit: 2, ..inside });
        assert_eq!((names(&page), page.more), (vec!["b/1", "b/2"], true));
        let none = list(&objects, &ListRequest { limit: 0, ..inside });
        assert_eq!((none.lines.len(), none.more), (0, false));
    }

    /// The same by the plainest means: all keys, folded, sorted, cut.
    fn plain(keys: &[String], request: &ListRequest<'_>) -> ListPage {
        let mut lines: Vec<String> = keys
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
        lines.sort();
        lines.dedup();
        let more = lines.len() > request.limit && request.limit > 0;
        lines.truncate(request.limit);
        ListPage { lines: lines.into_iter().map(Listed::Prefix).collect(), more }
    }

    proptest! {
        #[test]
        fn a_page_is_what_plain_sorting_says(
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
            let page = list(&objects(&keys), &request);
            let plain = plain(&keys, &request);
            prop_assert_eq!((names(&page), page.more), (names(&plain), plain.more));
        }
    }
}
