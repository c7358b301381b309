//! Big objects that are requested often are sent from locked memory, with the same responses.

use std::io::Write;

use haul_file_store::Options;
use haul_testing::{eventually, memory_lock, until_full};

use crate::client::{Reply, Running, noise, small};

const BYTES: usize = 5_000_001;

/// A server with a hot object, which is pinned.
fn server(body: &[u8]) -> Running {
    let server = Running::with_options(Options { pinned_bytes_max: 16 << 20, ..small() });
    assert_eq!(server.s3.put("/bucket/key", body).status, 200);
    for _ in 0..3 {
        assert!(server.s3.get("/bucket/key").body() == body);
    }
    wait_for_pinned(&server, body.len());
    server
}

fn wait_for_pinned(server: &Running, bytes: usize) {
    let metric = format!("haul_pinned_bytes {bytes}\n");
    eventually(&metric, || server.admin.get("/metrics").text().contains(&metric));
}

#[test]
fn pinned_object_has_the_responses_of_one_on_disk() {
    let Some(_lock) = memory_lock(8 << 20) else { return };
    let body = noise(BYTES);
    let pinned = server(&body);
    let on_disk = Running::with_options(small());
    assert_eq!(on_disk.s3.put("/bucket/key", &body).status, 200);
    let ranges = ["bytes=0-0", "bytes=131071-4000000", "bytes=-1", "bytes=5000000-", "bytes=9-8"];
    let ranges = ranges.map(|range| vec![("range", range)]);
    let conditions = [vec![], vec![("if-none-match", "*")], vec![("if-match", "\"x\"")]];
    for headers in ranges.iter().chain(&conditions) {
        for method in ["GET", "HEAD"] {
            let send = |server: &Running| server.s3.send(method, "/bucket/key", headers, b"");
            let (pinned, on_disk) = (send(&pinned), send(&on_disk));
            assert_eq!(pinned.status, on_disk.status, "{method} {headers:?}");
            let described = |reply: &Reply| {
                ["content-length", "content-range", "etag", "content-type"]
                    .map(|name| reply.header(name).map(str::to_owned))
            };
            assert_eq!(described(&pinned), described(&on_disk), "{method} {headers:?}");
            // Messages of errors have the identifier of their request.
            let is_same = pinned.body() == on_disk.body() || pinned.status >= 400;
            assert!(is_same, "{method} {headers:?}");
        }
    }
    eventually("no request is in flight", || {
        pinned.admin.get("/metrics").text().contains("haul_requests_in_flight 0\n")
    });
}

#[test]
fn pinned_object_can_be_read_to_its_end_after_it_is_overwritten() {
    let Some(_lock) = memory_lock(8 << 20) else { return };
    let body = noise(BYTES);
    let server = server(&body);
    let mut slow = server.s3.connect();
    slow.write_all(b"GET /bucket/key HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .unwrap();
    until_full(slow.tcp());
    assert_eq!(server.s3.put("/bucket/key", b"another").status, 200);
    assert_eq!(server.s3.get("/bucket/key").text(), "another");
    let reply = Reply::read(&mut slow);
    assert!(reply.is_whole() && reply.body() == body);
    wait_for_pinned(&server, 0);
}
