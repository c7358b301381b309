//! What the kernel holds back for more.

use std::net::TcpListener;

use crate::*;

/// It waits for a fifth of a second; here twenty times in a row.
#[test]
fn bytes_that_were_written_with_more_to_come_are_sent_by_a_push() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut far = listener.accept().unwrap().0;
    near.set_nonblocking(true).unwrap();
    let mut socket = Socket::new(near.into());
    let begun = Instant::now();
    for _ in 0..20 {
        let moved = socket.write(&[IoSlice::new(b"last")], true).unwrap();
        assert_eq!(moved, Moved::Bytes(4));
        socket.push();
        far.read_exact(&mut [0; 4]).unwrap();
    }
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}
