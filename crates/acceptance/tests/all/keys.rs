//! Encodes keys for URLs, and reads keys from listings.

use crate::http::Client;

/// Returns the request target of an object.
pub(crate) fn target(bucket: &str, key: &str) -> String {
    format!("/{bucket}/{}", percent_encode(key))
}

/// Percent-encodes text for a URL path; slashes are kept.
fn percent_encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let encode = |byte: u8| {
        if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(encode).collect()
}

/// Decodes text of a listing requested with `encoding-type=url`.
fn url_decode(text: &str) -> String {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap_or_default().replace('+', " ").into_bytes();
    for piece in pieces {
        let (digits, rest) = piece.split_at(2);
        bytes.push(u8::from_str_radix(digits, 16).expect("two hexadecimal digits"));
        bytes.extend(rest.replace('+', " ").bytes());
    }
    String::from_utf8(bytes).expect("keys are UTF-8")
}

/// Returns the content of each `<name>` element.
fn elements<'a>(xml: &'a str, name: &str) -> Vec<&'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    xml.split(&open).skip(1).filter_map(|rest| rest.split(&close).next()).collect()
}

/// Returns all keys of a bucket in the order of the listing, page by page.
pub(crate) fn list(client: &mut Client, bucket: &str) -> Vec<String> {
    let (mut keys, mut after) = (Vec::new(), String::new());
    loop {
        let target = format!("/{bucket}?list-type=2&encoding-type=url{after}");
        let response = client.request("GET", &target, b"").unwrap();
        let page = response.text();
        assert_eq!(response.status, 200, "{page}");
        keys.extend(elements(page, "Key").into_iter().map(url_decode));
        match elements(page, "NextContinuationToken").first() {
            Some(token) => after = format!("&continuation-token={}", percent_encode(token)),
            None => return keys,
        }
    }
}

#[test]
fn encoded_keys_round_trip() {
    for key in ["a/b", "a b+c%d&e", "..//ä\n😀?#", "plain-._~"] {
        assert_eq!(url_decode(&percent_encode(key)), key);
    }
    assert_eq!(url_decode("a+b%2Bc"), "a b+c");
    assert_eq!(elements("<Key>a</Key><x/><Key></Key>", "Key"), ["a", ""]);
}
