//! Pages of listings, compared with a simple implementation.

use std::collections::BTreeSet;

use haul_file_store::{Error, ListEntry, ListRequest};

use crate::{BUCKET, new_store, put};

fn keys() -> Vec<String> {
    let number = |n: usize| match n % 5 {
        0 => format!("photos/{}/{n}", n % 7),
        1 => format!("photos//{n}"),
        2 => format!("a{n}"),
        3 => format!("ü/日本/{n}"),
        _ => format!("{n}/x"),
    };
    (0..2500).map(number).collect()
}

/// Returns all entries: folded and sorted.
fn plain(keys: &[String], prefix: &str, delimiter: Option<&str>) -> Vec<String> {
    let fold = |key: &String| {
        let rest = key.strip_prefix(prefix)?;
        let end = delimiter.and_then(|d| rest.find(d).map(|at| prefix.len() + at + d.len()));
        Some(end.map_or(key.clone(), |end| key[..end].to_owned()))
    };
    keys.iter().filter_map(fold).collect::<BTreeSet<_>>().into_iter().collect()
}

#[test]
fn all_pages_form_the_whole_listing() {
    let (_dir, store) = new_store();
    let keys = keys();
    std::thread::scope(|scope| {
        for keys in keys.chunks(160) {
            let store = &store;
            scope.spawn(move || keys.iter().for_each(|key| drop(put(store, key, key.as_bytes()))));
        }
    });
    let reads = store.stats().needle_reads;
    for (prefix, delimiter, limit) in [
        ("", None, 1000),
        ("", Some("/"), 1),
        ("", Some("/"), 1000),
        ("photos/", Some("/"), 3),
        ("photos/", None, 97),
        ("photos", Some("s/"), 2),
        ("a", Some("1"), 10),
        ("ü/", Some("本/"), 1),
        ("nothing", Some("/"), 10),
    ] {
        let (mut found, mut after): (Vec<String>, Option<String>) = (Vec::new(), None);
        loop {
            let request = ListRequest { prefix, delimiter, after: after.as_deref(), limit };
            let page = store.list(BUCKET, &request).unwrap();
            assert!(page.entries.len() == limit || !page.more);
            for line in &page.entries {
                if let ListEntry::Object(info) = line {
                    assert_eq!(info.bytes, info.key.len() as u64);
                }
                found.push(line.name().to_owned());
            }
            if !page.more {
                break;
            }
            after = found.last().cloned();
        }
        assert_eq!(found, plain(&keys, prefix, delimiter), "{prefix:?} {delimiter:?} {limit}");
    }
    assert_eq!(store.stats().needle_reads, reads, "a listing reads no needles");
    let missing = store.list("no-bucket", &ListRequest { limit: 1, ..ListRequest::default() });
    assert!(matches!(missing, Err(Error::NoSuchBucket { .. })));
}
