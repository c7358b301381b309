//! Heads of requests that are right.

use haul_http1::{Asked, Framing, Target, Version};

use crate::right;

#[test]
fn a_usual_request_is_read() {
    let head = "GET /a/b?c=%20d HTTP/1.1\r\nhOST:\texample.org:8080 \r\nEmpty:\r\n\r\nrest";
    let request = right(head);
    assert_eq!(request.method, "GET");
    assert_eq!(request.target, Target::Origin("/a/b?c=%20d"));
    assert_eq!(request.version, Version::Http11);
    assert_eq!(request.host, Some("example.org:8080"));
    assert_eq!(request.framing, Framing::Length(0));
    assert!(request.keep_alive && !request.expect_continue && !request.is_upgrade);
    assert_eq!(request.fields.count(), 2);
    assert_eq!(request.fields.first("empty"), Some(&b""[..]));
    assert_eq!(&head[request.head_bytes..], "rest");
    assert_eq!(request.asked(), Asked::Other);
}
