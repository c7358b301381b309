//! Tests multipart uploads of a server that waits for its copy.

use rustix::process::Signal;

use super::RemoteStore;
use crate::helper::TestDir;

/// Returns the text between two marks.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let (_, rest) = text.split_once(before).unwrap();
    rest.split_once(after).unwrap().0
}

#[test]
fn repeated_completion_waits_for_the_copy_like_the_first() {
    let place = TestDir::on_disk();
    let remote = RemoteStore::start(&place);
    let server = remote.serve(&place, "data", &["--ack", "remote", "--ack-time", "2s"]);
    assert_eq!(server.request("PUT", "/bucket", b"").0, 200);
    let (_, answer) = server.request("POST", "/bucket/key?uploads", b"");
    let answer = String::from_utf8(answer).unwrap();
    let upload = between(&answer, "<UploadId>", "</UploadId>");
    let part = format!("/bucket/key?partNumber=1&uploadId={upload}");
    let (status, answer) = server.request("PUT", &part, b"content");
    assert_eq!(status, 200);
    let answer = String::from_utf8(answer).unwrap().to_ascii_lowercase();
    let etag = between(&answer, "etag: \"", "\"");
    let listed = format!(
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>\
         </CompleteMultipartUpload>"
    );
    let complete = || {
        let path = format!("/bucket/key?uploadId={upload}");
        let (status, answer) = server.request("POST", &path, listed.as_bytes());
        (status, String::from_utf8_lossy(&answer).into_owned())
    };
    remote.server.stop();
    for attempt in 0..2 {
        let (status, answer) = complete();
        assert_eq!(status, 503, "attempt {attempt}: {answer}");
        assert!(answer.contains("not confirmed"), "attempt {attempt}: {answer}");
    }
    remote.server.signal(Signal::CONT);
    let (status, answer) = complete();
    assert_eq!(status, 200, "{answer}");
    server.signal(Signal::KILL);
    server.wait();
    remote.restore(&place, "restored");
    let restored = remote.serve(&place, "restored", &[]);
    assert_eq!(super::get(&restored, "/bucket/key"), b"content");
}
