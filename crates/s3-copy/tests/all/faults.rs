//! Tests copies over connections that break.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use haul_s3_copy::{Endpoint, Options};

use crate::server::{Running, copy};

/// Passes connections on to a server, and cuts some of them instead of passing on a response to a
/// request that stored a version. Returns the address and the number of cuts.
fn cutting_relay(to: SocketAddr) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (cuts, responses) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let counter = Arc::clone(&cuts);
    thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server) = (client.unwrap(), TcpStream::connect(to).unwrap());
            let (from, into) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || pass(from, into, |_| false));
            let (cuts, responses) = (Arc::clone(&cuts), Arc::clone(&responses));
            let must_cut = move |bytes: &[u8]| {
                let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
                let has_version = text.contains("x-amz-version-id:");
                let must_cut = has_version && responses.fetch_add(1, Ordering::Relaxed) % 5 == 2;
                cuts.fetch_add(u64::from(must_cut), Ordering::Relaxed);
                must_cut
            };
            thread::spawn(move || pass(server, client, must_cut));
        }
    });
    (address, counter)
}

fn pass(mut from: TcpStream, mut to: TcpStream, must_cut: impl Fn(&[u8]) -> bool) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(bytes @ 1..) = from.read(&mut buffer) {
        if must_cut(&buffer[..bytes]) || to.write_all(&buffer[..bytes]).is_err() {
            break;
        }
    }
    // The other direction ends, too.
    for socket in [from, to] {
        drop(socket.shutdown(Shutdown::Both));
    }
}

#[test]
fn lost_responses_store_no_version_twice() {
    let (from, to) = (Running::new(), Running::new());
    from.s3.put("/b-1", b"");
    from.s3.enable_versioning("b-1");
    for key in ["a", "b", "c", "d"] {
        for content in ["one", "two", "three"] {
            from.s3.put(&format!("/b-1/{key}"), content.as_bytes());
        }
        from.s3.ok("DELETE", &format!("/b-1/{key}"), &[], b"");
    }
    let (relay, cuts) = cutting_relay(to.s3.0);
    let target = Endpoint::new(format!("http://{relay}"));
    let options = Options { jobs: 2, ..Options::new(from.endpoint(), target) };
    assert_eq!(copy(&options).versions, 16);
    assert!(cuts.load(Ordering::Relaxed) > 2);
    assert_eq!(from.s3.everything("b-1"), to.s3.everything("b-1"));
}
