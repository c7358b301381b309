//! Test that `push` sends the partial segments that `MSG_MORE` delays.

use std::net::TcpListener;

use crate::*;

/// Without the push, the kernel delays each of the 20 writes by 200 ms.
#[test]
fn push_sends_bytes_written_with_more() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut far = listener.accept().unwrap().0;
    near.set_nonblocking(true).unwrap();
    let mut socket = Socket::new(near.into());
    let times = [(); 20].map(|()| {
        let started = Instant::now();
        let moved = socket.write(&[IoSlice::new(b"last")], true).unwrap();
        assert_eq!(moved, IoStatus::Bytes(4));
        socket.push();
        far.read_exact(&mut [0; 4]).unwrap();
        started.elapsed()
    });
    assert!(times.iter().any(|time| *time < Duration::from_millis(200)), "{times:?}");
}
