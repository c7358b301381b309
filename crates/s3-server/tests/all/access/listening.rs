//! Clients that listen to events, and lose the right to them.

use std::io::{BufRead, Read, Write};

use haul_s3_server::Key;
use haul_testing::http::Peer;
use haul_testing::within_a_minute;

use super::Keyed;
use crate::client::assert_refused;
use crate::signing::hash;

/// Listens to events with this key, and waits for the first one, of a key that others put.
fn listen(
    keyed: &Keyed,
    key: &Key,
    bucket: &str,
) -> Peer<impl Read + Write + Send + 'static + use<>> {
    let target = format!("/{bucket}?events=s3%3AObjectCreated%3A%2A");
    let mut peer = Peer::over(keyed.server.s3.connect());
    peer.send(keyed.signer(key).request("GET", &target, &hash(b""), &[], |_| Vec::new()));
    let head = peer.head().unwrap();
    assert!(head.line.contains(" 200 "), "{}", head.line);
    assert_eq!(keyed.root("PUT", &format!("/{bucket}/first"), b"").status, 200);
    let mut line = String::new();
    while !line.contains("first") {
        assert!(peer.reader().read_line(&mut line).unwrap() > 0, "the response has ended");
    }
    peer
}

/// Returns what the client receives until the server ends the response.
fn rest(mut peer: Peer<impl Read + Write + Send + 'static>) -> String {
    let text = within_a_minute("the response ends", move || {
        let mut text = String::new();
        peer.reader().read_to_string(&mut text).unwrap();
        text
    });
    assert!(text.ends_with("0\r\n\r\n"), "the response is complete: {text:?}");
    text
}

#[test]
fn stream_ends_with_the_bucket_and_shows_nothing_of_its_successor() {
    let mut keyed = Keyed::with_events();
    let [ann, ben] =
        ["ann", "ben"].map(|user| keyed.key_with(user, &[], |key| key.creates_buckets = true));
    assert_eq!(keyed.send(&ann, "PUT", "/mine", b"").status, 200);
    let stream = listen(&keyed, &ann, "mine");
    assert_refused(&keyed.send(&ann, "DELETE", "/mine/first", b""), 204, "");
    assert_refused(&keyed.send(&ann, "DELETE", "/mine", b""), 204, "");
    assert_eq!(keyed.send(&ben, "PUT", "/mine", b"").status, 200);
    for number in 0..20 {
        let put = keyed.send(&ben, "PUT", &format!("/mine/secret-{number}"), b"");
        assert_eq!(put.status, 200);
    }
    let rest = rest(stream);
    assert!(!rest.contains("secret"), "{rest}");
}

#[test]
fn stream_ends_with_the_key_and_with_its_right() {
    let mut keyed = Keyed::with_events();
    let ann = keyed.key("ann", &[("admin", "bucket")]);
    let changes: [fn(&mut Key); 3] = [
        |key| key.is_disabled = true,
        |key| key.grants.clear(),
        |key| key.expires = Some(std::time::UNIX_EPOCH),
    ];
    for change in changes {
        let stream = listen(&keyed, &ann, "bucket");
        keyed.change(|list| change(list.key_mut(&ann.access_key).unwrap()));
        let rest = rest(stream);
        assert!(!rest.contains("Records"), "{rest}");
        keyed.change(|list| *list.key_mut(&ann.access_key).unwrap() = ann.clone());
    }
}

#[test]
fn administrator_listens_to_all_buckets_while_a_user_loses_one() {
    let mut keyed = Keyed::with_events();
    let eve = keyed.key("eve", &[("admin", "*")]);
    let stream = {
        let mut peer = Peer::over(keyed.server.s3.connect());
        let target = "/?events=s3%3AObjectCreated%3A%2A";
        peer.send(keyed.signer(&eve).request("GET", target, &hash(b""), &[], |_| Vec::new()));
        assert!(peer.head().unwrap().line.contains(" 200 "));
        peer
    };
    keyed.change(|list| list.key_mut(&eve.access_key).unwrap().grants.clear());
    assert!(!rest(stream).contains("Records"));
}
