//! Streams with marks in them, at which the kernel cuts reads short: urgent bytes, and descriptors
//! in the messages of unix sockets.

use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use haul_tcp_relay::{Address, Config, Moving};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, send, sendmsg};
use rustix::pipe::pipe;

use crate::world::{Relay, anywhere, config, listener};

const WAYS: [Moving; 3] = [Moving::Auto, Moving::Copy, Moving::Splice];

/// Longer than anything takes: a test that hangs fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// A target whose queue is full: the relay reads nothing of its client until somebody is taken out
/// of it. So all that was sent before lies in one socket at once.
struct Later {
    target: UnixListener,
    _first: UnixStream,
}

impl Later {
    fn at(path: &Path) -> Self {
        let target = UnixListener::bind(path).unwrap();
        rustix::net::listen(&target, 0).unwrap();
        let first = UnixStream::connect(path).unwrap();
        Self { target, _first: first }
    }

    fn accept(&self) -> UnixStream {
        drop(self.target.accept().unwrap());
        let far = self.target.accept().unwrap().0;
        far.set_read_timeout(Some(PATIENCE)).unwrap();
        far
    }
}

fn urgent(socket: impl AsFd, bytes: &[u8]) -> rustix::io::Result<usize> {
    send(socket, bytes, SendFlags::OOB)
}

fn expect(mut from: impl Read, expected: &[u8], what: &str) {
    let mut got = vec![0; expected.len()];
    from.read_exact(&mut got).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(got == expected, "{what}");
}

#[test]
fn urgent_bytes_arrive_in_their_place_and_nothing_behind_them_is_lost() {
    for moving in WAYS {
        for piece in [100, 30_000] {
            for is_shut in [false, true] {
                let what = format!("{moving:?}, {piece}, shut: {is_shut}");
                let dir = tempfile::tempdir().unwrap();
                let path = dir.path().join("target");
                let later = Later::at(&path);
                let relay = Relay::start(Config { moving, ..config([Address::Unix(path)]) });
                let mut near = relay.connect();
                let mut sent = Vec::new();
                for number in 1..=3 {
                    near.write_all(&vec![number; piece]).unwrap();
                    sent.extend(vec![number; piece]);
                    assert_eq!(urgent(&near, b"!"), Ok(1));
                    sent.push(b'!');
                }
                near.write_all(b"the last words").unwrap();
                sent.extend(b"the last words");
                if is_shut {
                    near.shutdown(Shutdown::Write).unwrap();
                }
                let mut far = later.accept();
                expect(&mut far, &sent, &what);
                if is_shut {
                    assert_eq!(far.read(&mut [0]).unwrap(), 0, "{what}");
                }
            }
        }
    }
}

#[test]
fn urgent_bytes_of_a_target_arrive_in_their_place() {
    for moving in WAYS {
        let (target, address) = listener();
        let relay = Relay::start(Config { moving, ..config([address]) });
        let near = relay.connect();
        near.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut far: TcpStream = target.accept().unwrap().0;
        for piece in [1, 1000, 100_000] {
            far.write_all(&vec![7; piece]).unwrap();
            assert_eq!(urgent(&far, b"!"), Ok(1));
            far.write_all(b"behind").unwrap();
            let sent = [&vec![7; piece][..], b"!behind"].concat();
            expect(&near, &sent, &format!("{moving:?}, {piece}"));
        }
    }
}

/// Sends bytes with a descriptor in their message.
fn send_with(socket: &UnixStream, bytes: &[u8], descriptor: &OwnedFd) {
    let descriptors = [descriptor.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
    let sent = sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::empty());
    assert_eq!(sent, Ok(bytes.len()));
}

/// A read stops behind each message with a descriptor, whatever else has come.
#[test]
fn descriptors_of_unix_sockets_are_let_go_and_the_bytes_around_them_arrive() {
    for moving in WAYS {
        for (is_shut, is_target) in [(false, false), (true, false), (false, true)] {
            let what = format!("{moving:?}, shut: {is_shut}, by the target: {is_target}");
            let dir = tempfile::tempdir().unwrap();
            let [near_path, far_path] = ["near", "far"].map(|name| dir.path().join(name));
            let later = Later::at(&far_path);
            let mut config = config([Address::Unix(far_path)]);
            config.listen = vec![Address::Unix(near_path.clone()), anywhere()];
            let relay = Relay::start(Config { moving, ..config });
            let near = UnixStream::connect(&near_path).unwrap();
            near.set_read_timeout(Some(PATIENCE)).unwrap();
            let accepted = is_target.then(|| later.accept());
            let sender = accepted.as_ref().unwrap_or(&near);
            let (reader, writer) = pipe().unwrap();
            let mut sent = Vec::new();
            for number in 1..=5 {
                send_with(sender, &[number; 100], &writer);
                sent.extend([number; 100]);
            }
            (&*sender).write_all(b"the last words").unwrap();
            sent.extend(b"the last words");
            if is_shut {
                sender.shutdown(Shutdown::Write).unwrap();
            }
            drop(writer);
            let far = if is_target { near.try_clone().unwrap() } else { later.accept() };
            expect(&far, &sent, &what);
            if is_shut {
                assert_eq!((&far).read(&mut [0]).unwrap(), 0, "{what}");
            }
            // Nobody has the other end of the pipe any more.
            let mut ends = [PollFd::new(&reader, PollFlags::IN)];
            let patience = Timespec::try_from(PATIENCE).unwrap();
            assert_eq!(poll(&mut ends, Some(&patience)), Ok(1), "{what}: a descriptor is kept");
            assert_eq!(File::from(reader).read(&mut [0]).unwrap(), 0, "{what}");
            drop(relay);
        }
    }
}

#[test]
fn urgent_bytes_of_unix_sockets_arrive_in_their_place() {
    for moving in WAYS {
        let dir = tempfile::tempdir().unwrap();
        let [near_path, far_path] = ["near", "far"].map(|name| dir.path().join(name));
        let later = Later::at(&far_path);
        let mut config = config([Address::Unix(far_path)]);
        config.listen = vec![Address::Unix(near_path.clone())];
        let _relay = Relay::start(Config { moving, ..config });
        let mut near = UnixStream::connect(&near_path).unwrap();
        near.set_read_timeout(Some(PATIENCE)).unwrap();
        near.write_all(b"before").unwrap();
        // Kernels before 5.15, and those built without it, know none.
        if urgent(&near, b"!").is_err() {
            return;
        }
        near.write_all(b"behind").unwrap();
        let far = later.accept();
        expect(&far, b"before!behind", &format!("{moving:?}, up"));
        (&far).write_all(b"before").unwrap();
        assert_eq!(urgent(&far, b"!"), Ok(1));
        (&far).write_all(b"behind").unwrap();
        expect(&near, b"before!behind", &format!("{moving:?}, down"));
    }
}
