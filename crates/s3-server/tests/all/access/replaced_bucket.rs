//! A bucket that is deleted while a request to it sends its body, and that another user creates.

use std::io::{Read, Write};

use haul_s3_server::Key;

use super::Keyed;
use crate::client::{Reply, assert_refused, noise};
use crate::signing::hash;

/// Starts a request to `/mine`, whose bucket is deleted and created by another user before the body
/// is sent. Returns the response.
fn send_across_a_replacement(
    keyed: &Keyed,
    [owner, other]: [&Key; 2],
    method: &str,
    target: &str,
    body: &[u8],
) -> Reply {
    assert_eq!(keyed.send(owner, "PUT", "/mine", b"").status, 200);
    let more = [("x-amz-acl", "public-read"), ("expect", "100-continue")];
    let more = if target == "/mine/key" { &more[..] } else { &more[1..] };
    let signer = keyed.signer(owner);
    let request = signer.request(method, target, &hash(body), more, |_| body.to_vec());
    let (head, _) = request.split_at(request.len() - body.len());
    let mut stream = keyed.server.s3.connect();
    stream.write_all(head).unwrap();
    // The server wants the body once it has authorized the request.
    let mut interim = [0; 25];
    stream.read_exact(&mut interim).unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    assert_refused(&keyed.send(owner, "DELETE", "/mine", b""), 204, "");
    assert_eq!(keyed.send(other, "PUT", "/mine", b"").status, 200);
    assert_eq!(keyed.send(other, "PUT", "/mine/key", b"others").status, 200);
    stream.write_all(body).unwrap();
    Reply::read(&mut stream)
}

#[test]
fn body_does_not_reach_a_bucket_that_another_user_has_created_meanwhile() {
    let mut keyed = Keyed::new();
    let [ann, ben] =
        ["ann", "ben"].map(|user| keyed.key_with(user, &[], |key| key.creates_buckets = true));
    let tags = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
    let policy = r#"{"Statement":{"Effect":"Allow","Principal":"*","Action":"s3:GetObject",
        "Resource":"arn:aws:s3:::mine/*"}}"#;
    for (target, body) in [
        ("/mine/key", noise(1000)),
        ("/mine/key", noise(300_000)),
        ("/mine/key", noise(6 << 20)),
        ("/mine?tagging=", tags.into()),
        ("/mine?policy=", policy.into()),
    ] {
        let reply = send_across_a_replacement(&keyed, [&ann, &ben], "PUT", target, &body);
        assert_refused(&reply, 404, "NoSuchBucket");
        assert_eq!(keyed.send(&ben, "GET", "/mine/key", b"").text(), "others", "{target}");
        assert_refused(&keyed.send(&ann, "GET", "/mine/key", b""), 403, "AccessDenied");
        for setting in ["tagging", "policy"] {
            let reply = keyed.send(&ben, "GET", &format!("/mine?{setting}="), b"");
            assert_eq!(reply.status, 404, "{setting}");
        }
        assert_refused(&keyed.send(&ben, "DELETE", "/mine/key", b""), 204, "");
        assert_refused(&keyed.send(&ben, "DELETE", "/mine", b""), 204, "");
    }
}
