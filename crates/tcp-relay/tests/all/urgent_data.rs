//! Tests of streams in which the kernel ends reads early: at TCP urgent data, and at descriptors
//! passed over unix sockets.

use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use haul_tcp_relay::{Address, Config, TransferMode};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, send, sendmsg};
use rustix::pipe::pipe;

use crate::support::{Relay, any_address, config, listener};

const MODES: [TransferMode; 3] = [TransferMode::Auto, TransferMode::Copy, TransferMode::Splice];

/// The timeout of reads and polls; only a test that hangs reaches it.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A target whose accept queue is full: the relay reads nothing from its client until the target
/// accepts, so all bytes that the client sent are in one socket buffer.
struct FullTarget {
    target: UnixListener,
    _first: UnixStream,
}

impl FullTarget {
    fn at(path: &Path) -> Self {
        let target = UnixListener::bind(path).unwrap();
        rustix::net::listen(&target, 0).unwrap();
        let first = UnixStream::connect(path).unwrap();
        Self { target, _first: first }
    }

    fn accept(&self) -> UnixStream {
        drop(self.target.accept().unwrap());
        let server = self.target.accept().unwrap().0;
        server.set_read_timeout(Some(TIMEOUT)).unwrap();
        server
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
fn urgent_data_of_clients_arrives_inline() {
    for transfer_mode in MODES {
        for piece in [100, 30_000] {
            for is_shut in [false, true] {
                let what = format!("{transfer_mode:?}, {piece}, shut: {is_shut}");
                let dir = tempfile::tempdir().unwrap();
                let path = dir.path().join("target");
                let target = FullTarget::at(&path);
                let relay = Relay::start(Config { transfer_mode, ..config([Address::Unix(path)]) });
                let mut client = relay.connect();
                let mut sent = Vec::new();
                for number in 1..=3 {
                    client.write_all(&vec![number; piece]).unwrap();
                    sent.extend(vec![number; piece]);
                    assert_eq!(urgent(&client, b"!"), Ok(1));
                    sent.push(b'!');
                }
                client.write_all(b"the last bytes").unwrap();
                sent.extend(b"the last bytes");
                if is_shut {
                    client.shutdown(Shutdown::Write).unwrap();
                }
                let mut server = target.accept();
                expect(&mut server, &sent, &what);
                if is_shut {
                    assert_eq!(server.read(&mut [0]).unwrap(), 0, "{what}");
                }
            }
        }
    }
}

#[test]
fn urgent_data_of_targets_arrives_inline() {
    for transfer_mode in MODES {
        let (target, address) = listener();
        let relay = Relay::start(Config { transfer_mode, ..config([address]) });
        let client = relay.connect();
        client.set_read_timeout(Some(TIMEOUT)).unwrap();
        let mut server: TcpStream = target.accept().unwrap().0;
        for piece in [1, 1000, 100_000] {
            server.write_all(&vec![7; piece]).unwrap();
            assert_eq!(urgent(&server, b"!"), Ok(1));
            server.write_all(b"behind").unwrap();
            let sent = [&vec![7; piece][..], b"!behind"].concat();
            expect(&client, &sent, &format!("{transfer_mode:?}, {piece}"));
        }
    }
}

/// Sends bytes with a descriptor attached (`SCM_RIGHTS`).
fn send_with(socket: &UnixStream, bytes: &[u8], descriptor: &OwnedFd) {
    let descriptors = [descriptor.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
    let sent = sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::empty());
    assert_eq!(sent, Ok(bytes.len()));
}

/// A read ends behind each message with a descriptor, even if more bytes were received.
#[test]
fn passed_descriptors_are_closed_and_the_bytes_relayed() {
    for transfer_mode in MODES {
        for (is_shut, is_target) in [(false, false), (true, false), (false, true)] {
            let what = format!("{transfer_mode:?}, shut: {is_shut}, by the target: {is_target}");
            let dir = tempfile::tempdir().unwrap();
            let [client_path, server_path] = ["client", "server"].map(|name| dir.path().join(name));
            let target = FullTarget::at(&server_path);
            let mut config = config([Address::Unix(server_path)]);
            config.listen = vec![Address::Unix(client_path.clone()), any_address()];
            let relay = Relay::start(Config { transfer_mode, ..config });
            let client = UnixStream::connect(&client_path).unwrap();
            client.set_read_timeout(Some(TIMEOUT)).unwrap();
            let accepted = is_target.then(|| target.accept());
            let sender = accepted.as_ref().unwrap_or(&client);
            let (reader, writer) = pipe().unwrap();
            let mut sent = Vec::new();
            for number in 1..=5 {
                send_with(sender, &[number; 100], &writer);
                sent.extend([number; 100]);
            }
            (&*sender).write_all(b"the last bytes").unwrap();
            sent.extend(b"the last bytes");
            if is_shut {
                sender.shutdown(Shutdown::Write).unwrap();
            }
            drop(writer);
            let server = if is_target { client.try_clone().unwrap() } else { target.accept() };
            expect(&server, &sent, &what);
            if is_shut {
                assert_eq!((&server).read(&mut [0]).unwrap(), 0, "{what}");
            }
            // The relay closed the other end of the pipe.
            let mut ends = [PollFd::new(&reader, PollFlags::IN)];
            let timeout = Timespec::try_from(TIMEOUT).unwrap();
            assert_eq!(
                poll(&mut ends, Some(&timeout)),
                Ok(1),
                "{what}: a descriptor is still open"
            );
            assert_eq!(File::from(reader).read(&mut [0]).unwrap(), 0, "{what}");
            drop(relay);
        }
    }
}

#[test]
fn urgent_data_of_unix_sockets_arrives_inline() {
    for transfer_mode in MODES {
        let dir = tempfile::tempdir().unwrap();
        let [client_path, server_path] = ["client", "server"].map(|name| dir.path().join(name));
        let target = FullTarget::at(&server_path);
        let mut config = config([Address::Unix(server_path)]);
        config.listen = vec![Address::Unix(client_path.clone())];
        let _relay = Relay::start(Config { transfer_mode, ..config });
        let mut client = UnixStream::connect(&client_path).unwrap();
        client.set_read_timeout(Some(TIMEOUT)).unwrap();
        client.write_all(b"before").unwrap();
        // Unix sockets support urgent data since Linux 5.15, if the kernel was built with this
        // option.
        if urgent(&client, b"!").is_err() {
            return;
        }
        client.write_all(b"behind").unwrap();
        let server = target.accept();
        expect(&server, b"before!behind", &format!("{transfer_mode:?}, up"));
        (&server).write_all(b"before").unwrap();
        assert_eq!(urgent(&server, b"!"), Ok(1));
        (&server).write_all(b"behind").unwrap();
        expect(&client, b"before!behind", &format!("{transfer_mode:?}, down"));
    }
}
