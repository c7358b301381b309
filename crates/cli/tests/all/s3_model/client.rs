//! Requests of the test, and the comparison of responses with the model.

use haul_testing::http::{Message, Peer};

use super::model::{Bucket, Content, Found, NULL, Versioning};

/// A client that opens a connection for each request.
#[derive(Debug, Clone)]
pub(super) struct Client(pub(super) String);

pub(super) type Field<'a> = (&'a str, String);

/// A listed version: its key, ID and length, and `true` for the latest one. A delete marker has no
/// length.
pub(super) type Line = (String, String, Option<usize>, bool);

impl Client {
    /// Sends a request without waiting for its response.
    pub(super) fn start(
        &self,
        (method, target): (&str, &str),
        fields: &[Field<'_>],
        body: &[u8],
    ) -> Peer {
        let mut head = format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n",
            self.0,
            body.len()
        );
        fields.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
        let mut peer = Peer::connect(&self.0).unwrap();
        // The server may refuse a request before it has received the body.
        drop(peer.try_send([head.as_bytes(), b"\r\n", body].concat()));
        peer
    }

    /// Sends a request, and returns the response.
    pub(super) fn send(
        &self,
        (method, target): (&str, &str),
        fields: &[Field<'_>],
        body: &[u8],
    ) -> Message {
        let response = self.start((method, target), fields, body).response_to(method);
        response.unwrap_or_else(|error| panic!("{method} {target}: {error}"))
    }

    /// Returns all versions of a bucket, listed in pages of this size. In a page, delete markers
    /// follow the versions.
    pub(super) fn versions(&self, bucket: &str, page: usize) -> Vec<Line> {
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let target = format!("/{bucket}?versions&encoding-type=url&max-keys={page}{after}");
            let response = self.send(("GET", &target), &[], b"");
            assert_eq!(response.status, 200, "{target}: {}", text(&response));
            let line = |entry: &str, is_marker: bool| -> Line {
                let of = |name| element(entry, name).unwrap();
                let bytes = (!is_marker).then(|| of("Size").parse().unwrap());
                (of("Key"), of("VersionId"), bytes, of("IsLatest") == "true")
            };
            let listed = text(&response);
            let before = found.len();
            found.extend(elements(listed, "Version").iter().map(|entry| line(entry, false)));
            found.extend(elements(listed, "DeleteMarker").iter().map(|entry| line(entry, true)));
            assert!(found.len() - before <= page, "{target}");
            if element(listed, "IsTruncated").unwrap() == "false" {
                return found;
            }
            assert_eq!(found.len() - before, page, "{target}");
            let [key, id] =
                ["NextKeyMarker", "NextVersionIdMarker"].map(|name| element(listed, name).unwrap());
            after = format!("&key-marker={key}&version-id-marker={id}");
        }
    }

    /// Returns the keys and lengths of the current objects of a bucket, listed in pages.
    pub(super) fn objects(&self, bucket: &str, page: usize) -> Vec<(String, usize)> {
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let target = format!("/{bucket}?list-type=2&encoding-type=url&max-keys={page}{after}");
            let response = self.send(("GET", &target), &[], b"");
            assert_eq!(response.status, 200, "{target}: {}", text(&response));
            let listed = text(&response);
            found.extend(elements(listed, "Contents").iter().map(|entry| {
                let of = |name| element(entry, name).unwrap();
                (of("Key"), of("Size").parse().unwrap())
            }));
            match element(listed, "NextContinuationToken") {
                Some(token) => after = format!("&continuation-token={}", encoded(&token)),
                None => return found,
            }
        }
    }
}

/// Returns the body of a response.
pub(super) fn text(response: &Message) -> &str {
    std::str::from_utf8(&response.body).unwrap_or("no text")
}

/// Returns the contents of all XML elements with this name.
pub(super) fn elements(xml: &str, name: &str) -> Vec<String> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let rests = xml.split(&open).skip(1);
    rests.map(|rest| rest.split(&close).next().unwrap().replace("&quot;", "\"")).collect()
}

/// Returns the content of the first XML element with this name.
pub(super) fn element(xml: &str, name: &str) -> Option<String> {
    elements(xml, name).into_iter().next()
}

/// Encodes a text for a URL as lists with `encoding-type=url` do.
pub(super) fn encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'/' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// Returns the target of a request for an object or a version.
pub(super) fn target(bucket: &str, key: &str, id: Option<&str>, subresource: &str) -> String {
    let version = id.map_or_else(String::new, |id| format!("versionId={id}"));
    let parts = [subresource, &version];
    let query: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    format!("/{bucket}/{}{mark}{}", encoded(key), query.join("&"))
}

/// Fails unless a response is this error.
#[track_caller]
pub(super) fn assert_error(response: &Message, status: u16, code: &str, about: &str) {
    let found = element(text(response), "Code");
    let is_code = response.body.is_empty() || found.as_deref() == Some(code);
    let is_expected = response.status == status && is_code;
    assert!(is_expected, "{about}: {} {found:?}, not {status} {code}", response.status);
}

/// Fails unless a response is that to a request for an object or version that does not exist.
/// Returns `false` if it exists.
#[track_caller]
pub(super) fn is_missing(response: &Message, found: &Found<'_>, about: &str) -> bool {
    let (status, code, marker) = match found {
        Found::Object(..) => return false,
        Found::Marker(id) => (405, "MethodNotAllowed", Some(*id)),
        Found::NoKey(marker) => (404, "NoSuchKey", *marker),
        Found::NoVersion => (404, "NoSuchVersion", None),
    };
    assert_error(response, status, code, about);
    let field = |name| response.field(name);
    assert_eq!(field("x-amz-delete-marker"), marker.map(|_id| "true"), "{about}");
    assert_eq!(field("x-amz-version-id"), marker, "{about}");
    true
}

/// Fails unless a response has the headers of an object.
#[track_caller]
pub(super) fn check_headers(
    response: &Message,
    (bucket, id, content): (&Bucket, &str, &Content),
    about: &str,
) {
    let field = |name| response.field(name);
    assert_eq!(field("etag"), Some(content.etag.as_str()), "{about}");
    assert_eq!(field("x-amz-meta-m"), Some(content.meta.as_str()), "{about}");
    let shown = (bucket.versioning != Versioning::Off).then_some(id);
    assert!(shown.is_some() || id == NULL);
    assert_eq!(field("x-amz-version-id"), shown, "{about}");
    let tags = content.tag.as_ref().map(|_value| "1");
    assert_eq!(field("x-amz-tagging-count"), tags, "{about}");
    let lock = content.lock;
    let mode = lock.retention.map(|it| it.mode.name());
    assert_eq!(field("x-amz-object-lock-mode"), mode, "{about}");
    let until = lock.retention.map(|it| it.until());
    assert_eq!(field("x-amz-object-lock-retain-until-date"), until.as_deref(), "{about}");
    let hold = lock.hold.map(|is_on| if is_on { "ON" } else { "OFF" });
    assert_eq!(field("x-amz-object-lock-legal-hold"), hold, "{about}");
    assert_eq!(field("x-amz-delete-marker"), None, "{about}");
}

/// Fails unless the server has all versions of a bucket, with their content, and no others.
pub(super) fn check_bucket(client: &Client, bucket: &Bucket, page: usize) {
    let mut expected: Vec<Line> = Vec::new();
    for (key, versions) in &bucket.keys {
        expected.extend(versions.iter().enumerate().map(|(index, version)| {
            let bytes = version.content.as_ref().map(|content| content.bytes.len());
            (encoded(key), version.id.clone(), bytes, index == 0)
        }));
    }
    let mut found = client.versions(bucket.name, page);
    let order = |lines: &[Line]| -> Vec<Line> {
        // Delete markers follow the versions of a page, but the versions of a key are in order.
        lines.iter().filter(|line| line.2.is_some()).cloned().collect()
    };
    assert_eq!(order(&found), order(&expected), "{}", bucket.name);
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected, "{}", bucket.name);
    let currents = bucket.keys.iter().filter_map(|(key, versions)| {
        Some((encoded(key), versions[0].content.as_ref()?.bytes.len()))
    });
    assert_eq!(client.objects(bucket.name, page), currents.collect::<Vec<_>>(), "{}", bucket.name);
    for (key, versions) in &bucket.keys {
        let ids = versions.iter().map(|version| Some(version.id.as_str()));
        for id in ids.chain([None]) {
            check_object(client, bucket, (key, id), "GET");
        }
    }
}

/// Requests an object or a version, and compares the response with the model.
pub(super) fn check_object(
    client: &Client,
    bucket: &Bucket,
    (key, id): (&str, Option<&str>),
    method: &str,
) {
    let plain = target(bucket.name, key, id, "");
    let about = format!("{method} {plain}");
    let response = client.send((method, &plain), &[], b"");
    let found = bucket.find(key, id);
    if is_missing(&response, &found, &about) {
        return;
    }
    let Found::Object(id, content) = found else { unreachable!("it is not missing") };
    assert_eq!(response.status, 200, "{about}: {}", text(&response));
    check_headers(&response, (bucket, id, content), &about);
    let length = content.bytes.len().to_string();
    assert_eq!(response.field("content-length"), Some(length.as_str()), "{about}");
    if method == "GET" {
        assert!(response.body == *content.bytes, "{about}: the content differs");
        let tags = target(bucket.name, key, Some(id), "tagging");
        let tags = client.send(("GET", &tags), &[], b"");
        let tags = elements(text(&tags), "Value");
        assert_eq!(tags.first(), content.tag.as_ref(), "tags of {about}");
    }
}
