//! Keys in addresses and listings.

use crate::http::Client;

/// The path of a request for an object.
pub(crate) fn target(bucket: &str, key: &str) -> String {
    format!("/{bucket}/{}", encoded(key))
}

/// A text as a part of an address; slashes stay.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let encode = |byte: u8| {
        if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(encode).collect()
}

/// A text from a listing that was asked for in the encoding of addresses.
fn decoded(text: &str) -> String {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap_or_default().replace('+', " ").into_bytes();
    for piece in pieces {
        let (digits, rest) = piece.split_at(2);
        bytes.push(u8::from_str_radix(digits, 16).expect("two hexadecimal digits"));
        bytes.extend(rest.replace('+', " ").bytes());
    }
    String::from_utf8(bytes).expect("keys are UTF-8")
}

/// What stands between `<name>` and `</name>`, each time.
fn elements<'a>(xml: &'a str, name: &str) -> Vec<&'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    xml.split(&open).skip(1).filter_map(|rest| rest.split(&close).next()).collect()
}

/// All keys of a bucket, page by page, in the order the server lists them.
pub(crate) fn list(client: &mut Client, bucket: &str) -> Vec<String> {
    let (mut keys, mut after) = (Vec::new(), String::new());
    loop {
        let target = format!("/{bucket}?list-type=2&encoding-type=url{after}");
        let answer = client.request("GET", &target, b"").unwrap();
        let page = answer.text();
        assert_eq!(answer.status, 200, "{page}");
        keys.extend(elements(&page, "Key").into_iter().map(decoded));
        match elements(&page, "NextContinuationToken").first() {
            Some(token) => after = format!("&continuation-token={}", encoded(token)),
            None => return keys,
        }
    }
}

#[test]
fn keys_survive_the_way_into_an_address_and_back() {
    for key in ["a/b", "a b+c%d&e", "..//ä\n😀?#", "plain-._~"] {
        assert_eq!(decoded(&encoded(key)), key);
    }
    assert_eq!(decoded("a+b%2Bc"), "a b+c");
    assert_eq!(elements("<Key>a</Key><x/><Key></Key>", "Key"), ["a", ""]);
}
