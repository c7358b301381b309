//! The three forms of listings.

use crate::client::{Running, assert_refused};

const KEYS: [&str; 8] = ["a", "b/1", "b/2", "b/c/3", "c", "d/", "d/4", "e+ f"];

fn filled() -> Running {
    let server = Running::new();
    for key in KEYS {
        let target = format!("/bucket/{}", key.replace(' ', "%20").replace('+', "%2B"));
        assert_eq!(server.s3.put(&target, key.as_bytes()).status, 200);
    }
    server
}

/// Returns the keys and common prefixes of all pages.
fn pages(server: &Running, query: &str, next: &str, parameter: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut after = String::new();
    for _ in 0..20 {
        let reply = server.s3.get(&format!("/bucket?encoding-type=url&{query}{after}"));
        assert_eq!(reply.status, 200, "{}", reply.text());
        let mut page = reply.all_xml("Key");
        for prefixes in reply.all_xml("CommonPrefixes") {
            page.push(prefixes.replace("<Prefix>", "").replace("</Prefix>", ""));
        }
        page.sort();
        let last = page.last().cloned();
        names.extend(page);
        if reply.xml("IsTruncated").as_deref() != Some("true") {
            return names;
        }
        let next = reply.xml(next).or(last).unwrap();
        after = format!("&{parameter}={}", next.replace('+', "%2B"));
    }
    panic!("the listing does not end: {names:?}");
}

#[test]
fn pages_of_every_size_list_each_name_once() {
    let server = filled();
    let all = ["a", "b/1", "b/2", "b/c/3", "c", "d/", "d/4", "e%2B%20f"];
    let folded = ["a", "b/", "c", "d/", "e%2B%20f"];
    for size in 1..=9 {
        for (form, next, parameter) in [
            ("", "NextMarker", "marker"),
            ("list-type=2&", "NextContinuationToken", "continuation-token"),
            ("versions&", "NextKeyMarker", "key-marker"),
        ] {
            let query = format!("{form}max-keys={size}");
            assert_eq!(pages(&server, &query, next, parameter), all, "{query}");
            let query = format!("{query}&delimiter=/");
            assert_eq!(pages(&server, &query, next, parameter), folded, "{query}");
        }
    }
}

#[test]
fn prefix_and_start_after_restrict_the_listing() {
    let server = filled();
    let keys = |query: &str| server.s3.get(&format!("/bucket?list-type=2&{query}")).all_xml("Key");
    assert_eq!(keys("prefix=b/"), ["b/1", "b/2", "b/c/3"]);
    assert_eq!(keys("prefix=b/&delimiter=/"), ["b/1", "b/2"]);
    assert_eq!(keys("start-after=c"), ["d/", "d/4", "e+ f"]);
    assert_eq!(keys("prefix=x"), [""; 0]);
    assert_eq!(server.s3.get("/bucket?marker=d/4").all_xml("Key"), ["e+ f"]);
}

#[test]
fn listing_echoes_its_parameters_and_counts_keys() {
    let server = filled();
    let reply = server.s3.get("/bucket?list-type=2&prefix=b/&delimiter=/&max-keys=2");
    assert_eq!(reply.xml("KeyCount").as_deref(), Some("2"));
    assert_eq!(reply.xml("MaxKeys").as_deref(), Some("2"));
    assert_eq!(reply.xml("Delimiter").as_deref(), Some("/"));
    assert_eq!(reply.xml("Prefix").as_deref(), Some("b/"));
    assert_eq!(reply.xml("Size").as_deref(), Some("3"));
    assert_eq!(reply.xml("Owner"), None);
    let owned = server.s3.get("/bucket?list-type=2&fetch-owner=true");
    assert_eq!(owned.all_xml("Owner").len(), KEYS.len());
    let none = server.s3.get("/bucket?list-type=2&max-keys=0");
    assert_eq!(none.xml("KeyCount").as_deref(), Some("0"));
    assert_eq!(none.xml("IsTruncated").as_deref(), Some("false"));
}

#[test]
fn every_object_is_its_only_version() {
    let server = filled();
    let reply = server.s3.get("/bucket?versions");
    assert_eq!(reply.all_xml("VersionId"), vec!["null"; KEYS.len()]);
    assert_eq!(reply.all_xml("IsLatest"), vec!["true"; KEYS.len()]);
    assert_eq!(server.s3.get("/bucket/a?versionId=null").status, 200);
    assert_refused(&server.s3.get("/bucket/a?versionId=7"), 400, "InvalidArgument");
}

#[test]
fn invalid_listing_parameters_are_refused() {
    let server = filled();
    for query in
        ["max-keys=-1", "max-keys=x", "encoding-type=x", "list-type=2&continuation-token=%21"]
    {
        assert_refused(&server.s3.get(&format!("/bucket?{query}")), 400, "InvalidArgument");
    }
    assert_refused(&server.s3.get("/nowhere?list-type=2"), 404, "NoSuchBucket");
    assert_refused(&server.s3.get("/nowhere?max-keys=0"), 404, "NoSuchBucket");
}

#[test]
fn key_with_carriage_return_is_listed_and_deleted() {
    let server = Running::new();
    assert_eq!(server.s3.put("/bucket/a%0Db", b"x").status, 200);
    for query in ["", "?list-type=2", "?versions"] {
        let reply = server.s3.get(&format!("/bucket{query}"));
        assert_eq!(reply.all_xml("Key"), ["a&#13;b"], "{query}");
        assert!(reply.is_whole());
    }
    let delete = "<Delete><Object><Key>a&#13;b</Key></Object></Delete>";
    let reply = server.s3.post("/bucket?delete", delete);
    assert_eq!(reply.all_xml("Key"), ["a&#13;b"], "{}", reply.text());
    assert_eq!(server.s3.get("/bucket/a%0Db").status, 404);
}
