//! Reads the listings of a bucket, page by page, as a sequence of keys.

use std::borrow::Cow;
use std::collections::VecDeque;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::client::{Client, Request};
use crate::error::{Error, Result};
use crate::model::{Key, Version};
use crate::xml::Element;

/// The keys of a bucket, in the order of the server.
pub(crate) struct Listing<'a> {
    client: &'a Client,
    bucket: &'a str,
    prefix: &'a str,
    has_versions: bool,
    /// The place at which the next page begins; `None` after the last page.
    next: Option<Next>,
    /// Keys that were read, and are complete.
    keys: VecDeque<Key>,
    /// A key whose versions may continue on the next page.
    last: Option<Key>,
}

/// The parameters of a page.
#[derive(Default)]
enum Next {
    #[default]
    Start,
    Token(String),
    Version {
        key: String,
        version: String,
    },
}

impl<'a> Listing<'a> {
    /// Returns the keys that begin with a prefix. Sends no request.
    pub(crate) fn new(
        client: &'a Client,
        bucket: &'a str,
        prefix: &'a str,
        has_versions: bool,
    ) -> Self {
        let next = Some(Next::Start);
        Self { client, bucket, prefix, has_versions, next, keys: VecDeque::new(), last: None }
    }

    /// Returns the versions of one key.
    pub(crate) async fn find(
        client: &Client,
        bucket: &str,
        key: &str,
        has_versions: bool,
    ) -> Result<Option<Key>> {
        // Of the keys that begin with this one, it is the first.
        let first = Listing::new(client, bucket, key, has_versions).next().await?;
        Ok(first.filter(|found| found.name == key))
    }

    /// Returns the next key.
    pub(crate) async fn next(&mut self) -> Result<Option<Key>> {
        while self.keys.is_empty() {
            match self.next.take() {
                Some(next) => self.read_page(&next).await?,
                None => return Ok(self.last.take().map(sorted)),
            }
        }
        Ok(self.keys.pop_front().map(sorted))
    }

    async fn read_page(&mut self, next: &Next) -> Result<()> {
        let mut request = Request::get(self.bucket, "").with("encoding-type", "url");
        if !self.prefix.is_empty() {
            request = request.with("prefix", self.prefix);
        }
        request = match self.has_versions {
            true => request.with("versions", ""),
            false => request.with("list-type", "2"),
        };
        request = match next {
            Next::Start => request,
            Next::Token(token) => request.with("continuation-token", token),
            Next::Version { key, version } => {
                request.with("key-marker", key).with("version-id-marker", version)
            }
        };
        let page = self.client.document(&request).await?;
        let is_encoded = page.text(&["EncodingType"]) == "url";
        let entries = page
            .children
            .iter()
            .filter(|child| matches!(&*child.name, "Contents" | "Version" | "DeleteMarker"))
            .map(|entry| (decoded(entry.text(&["Key"]), is_encoded), entry));
        let mut entries: Vec<_> = entries.collect();
        // Some servers list all delete markers of a page after its versions. The sort is stable.
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (name, entry) in entries {
            self.push(name.into_owned(), version(entry, self.has_versions));
        }
        if page.text(&["IsTruncated"]) == "true" {
            self.next = Some(following(&page, self.has_versions, is_encoded));
            let is_stuck = match (&self.next, next) {
                (Some(Next::Token(new)), Next::Token(old)) => new == old,
                (Some(Next::Token(new)), _) => new.is_empty(),
                (Some(Next::Version { key, version }), Next::Version { key: k, version: v }) => {
                    (key, version) == (k, v)
                }
                (Some(Next::Version { key, .. }), _) => key.is_empty(),
                _ => false,
            };
            if is_stuck {
                let why = "the list does not continue after a page".to_owned();
                return Err(Error::Response { request: self.client.describe(&request), why });
            }
        }
        Ok(())
    }

    /// Adds a version to the key before, or as a new key.
    fn push(&mut self, name: String, version: Version) {
        match &mut self.last {
            Some(last) if last.name == name => last.versions.push(version),
            last => self.keys.extend(last.replace(Key { name, versions: vec![version] })),
        }
    }
}

/// Returns the place at which the page after this one begins.
fn following(page: &Element, has_versions: bool, is_encoded: bool) -> Next {
    if has_versions {
        let key = decoded(page.text(&["NextKeyMarker"]), is_encoded).into_owned();
        return Next::Version { key, version: page.text(&["NextVersionIdMarker"]).to_owned() };
    }
    Next::Token(page.text(&["NextContinuationToken"]).to_owned())
}

fn version(entry: &Element, has_versions: bool) -> Version {
    Version {
        id: has_versions.then(|| entry.text(&["VersionId"]).to_owned()),
        etag: entry.text(&["ETag"]).trim_matches('"').to_owned(),
        bytes: entry.text(&["Size"]).parse().unwrap_or_default(),
        is_delete_marker: entry.name == "DeleteMarker",
        is_latest: !has_versions || entry.text(&["IsLatest"]) == "true",
        modified: OffsetDateTime::parse(entry.text(&["LastModified"]), &Rfc3339).ok(),
    }
}

/// Decodes a key of a listing with `encoding-type=url`.
fn decoded(text: &str, is_encoded: bool) -> Cow<'_, str> {
    if !is_encoded {
        return text.into();
    }
    // A key is decoded as the name of a query without a value. The bytes `&` and `=`, which some
    // servers do not encode, are separators there.
    let safe = text.replace('&', "%26").replace('=', "%3D");
    let decoded = form_urlencoded::parse(safe.as_bytes()).next();
    decoded.map_or_else(String::new, |(name, _)| name.into_owned()).into()
}

/// Returns a key with its versions in ascending order of time. Servers list the newest version
/// first; some list delete markers after all versions.
fn sorted(mut key: Key) -> Key {
    key.versions.reverse();
    key.versions.sort_by_key(|version| (version.is_latest, version.modified));
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_decoded() {
        for (text, key) in
            [("a+b%2Bc%25/", "a b+c%/"), ("%C3%A4&=", "\u{e4}&="), ("%01", "\u{1}"), ("", "")]
        {
            assert_eq!(decoded(text, true), key);
            assert_eq!(decoded(text, false), text);
        }
    }

    #[test]
    fn versions_are_in_order_of_time() {
        let version = |etag: &str, is_latest: bool, modified: &str| Version {
            id: None,
            etag: etag.to_owned(),
            bytes: 0,
            is_delete_marker: false,
            is_latest,
            modified: OffsetDateTime::parse(modified, &Rfc3339).ok(),
        };
        let early = "2026-01-01T00:00:00Z";
        let listed = vec![
            version("c", false, early),
            version("b", false, early),
            version("a", false, "2025-01-01T00:00:00.5Z"),
            version("d", true, early),
        ];
        let key = sorted(Key { name: "k".to_owned(), versions: listed });
        let order: String = key.versions.iter().map(|version| &*version.etag).collect();
        assert_eq!(order, "abcd");
    }
}
