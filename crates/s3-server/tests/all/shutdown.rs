//! Graceful shutdown.

use std::io::Write;
use std::time::Duration;

use haul_s3_server::Limits;
use haul_testing::{ClientStream, eventually};

use crate::client::{Reply, Running};

/// Sends a request with the first part of its body.
fn begun(server: &Running) -> ClientStream {
    let mut stream = server.s3.connect();
    let headers = [("content-length", "5000000")];
    stream.write_all(&server.s3.head_bytes("PUT", "/bucket/key", &headers)).unwrap();
    stream.write_all(&[1; 100_000]).unwrap();
    eventually("a request is in flight", || {
        server.admin.get("/metrics").text().contains("haul_requests_in_flight 1")
    });
    stream
}

#[test]
fn requests_in_flight_are_completed_and_new_connections_refused() {
    let mut server = Running::new();
    let mut stream = begun(&server);
    server.request_stop();
    eventually("connections are refused", || server.s3.0.connect().is_err());
    stream.write_all(&[1; 4_900_000]).unwrap();
    assert_eq!(Reply::read(&mut stream).status, 200);
    server.join();
}

#[test]
fn request_that_exceeds_drain_time_is_aborted_and_stores_nothing() {
    let limits = Limits { drain_time_max: Duration::from_millis(100), ..Limits::default() };
    let mut server = Running::with(None, limits);
    server.s3.put("/bucket", b"");
    let mut stream = begun(&server);
    server.join();
    assert_eq!(Reply::read(&mut stream).status, 0);
    let again = Running::on(server.into_dir(), None, Limits::default());
    assert!(again.s3.get("/bucket?list-type=2").all_xml("Key").is_empty());
}

#[test]
fn acknowledged_objects_survive_a_restart() {
    let server = Running::new();
    for index in 0..20 {
        let headers = [("x-amz-meta-index", index.to_string())];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        let target = format!("/bucket/key-{index}");
        assert_eq!(server.s3.send("PUT", &target, &headers, b"hello").status, 200);
    }
    server.s3.delete("/bucket/key-7");
    let again = Running::on(server.into_dir(), None, Limits::default());
    assert_eq!(again.s3.get("/bucket?list-type=2").all_xml("Key").len(), 19);
    let got = again.s3.get("/bucket/key-3");
    assert_eq!((got.text().as_str(), got.header("x-amz-meta-index")), ("hello", Some("3")));
}
