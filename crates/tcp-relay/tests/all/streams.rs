//! Tests that every byte arrives once and in order, and that EOF is forwarded.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

use haul_tcp_relay::{Address, EndReason, TransferMode};

use crate::scripted_peer::{Outcome, Script, Stream, follow};
use crate::support::{Relay, config, listener};

fn scripts(number: u64, up_bytes: u64, down_bytes: u64, piece: usize) -> (Script, Script) {
    let (up, down) = (Stream::new(number, true), Stream::new(number, false));
    let plain = Script {
        sends: up,
        send_bytes: up_bytes,
        gets: down,
        piece,
        reads_late: false,
        resets_at: None,
    };
    (plain, Script { sends: down, send_bytes: down_bytes, gets: up, ..plain })
}

#[test]
fn streams_arrive_intact_in_every_transfer_mode() {
    for transfer_mode in [TransferMode::Auto, TransferMode::Copy, TransferMode::Splice] {
        for (up_bytes, down_bytes, piece) in [
            (0, 0, 1),
            (1, 0, 1),
            (0, 1, 1),
            (5_000, 3_000, 7),
            (100_000, 1_000_000, 1448),
            (5_000_000, 7_000_000, 65_536),
            (9_000_000, 9_000_000, 1 << 20),
        ] {
            for late in [[false, false], [true, false], [false, true]] {
                let (target, address) = listener();
                let relay =
                    Relay::start(haul_tcp_relay::Config { transfer_mode, ..config([address]) });
                let (mut client, mut server) = scripts(1, up_bytes, down_bytes, piece);
                (client.reads_late, server.reads_late) = (late[0], late[1]);
                let server = thread::spawn(move || follow(target.accept().unwrap().0, &server));
                let what = format!("{transfer_mode:?} {up_bytes} {down_bytes} {piece} {late:?}");
                assert_eq!(follow(relay.connect(), &client), Outcome::Clean(down_bytes), "{what}");
                assert_eq!(server.join().unwrap(), Outcome::Clean(up_bytes), "{what}");
                let stats = relay.drain();
                assert_eq!(stats.ended(EndReason::Clean), 1, "{what}");
                let moved = [stats.up, stats.down].map(|m| (m.bytes_copied, m.bytes_spliced));
                let total = moved.map(|(copied, spliced)| copied + spliced);
                assert_eq!(total, [up_bytes, down_bytes], "{what}");
                match transfer_mode {
                    TransferMode::Copy => assert_eq!(moved.map(|moved| moved.1), [0, 0], "{what}"),
                    TransferMode::Splice => {
                        assert_eq!(moved.map(|moved| moved.0), [0, 0], "{what}")
                    }
                    TransferMode::Auto => {}
                }
            }
        }
    }
}

#[test]
fn unix_sockets_are_relayed_on_either_side() {
    let dir = tempfile::tempdir().unwrap();
    let (client_path, server_path) = (dir.path().join("client"), dir.path().join("server"));
    let target = UnixListener::bind(&server_path).unwrap();
    let mut config = config([Address::Unix(server_path)]);
    config.listen.push(Address::Unix(client_path.clone()));
    let relay = Relay::start(config);
    for (number, bytes, piece) in [(1, 3, 1), (2, 40_000, 512), (3, 6_000_000, 200_000)] {
        for is_unix in [true, false] {
            let (client, server) = scripts(number, bytes, bytes + 1, piece);
            let ends = thread::scope(|scope| {
                let server = scope.spawn(|| follow(target.accept().unwrap().0, &server));
                let client = match is_unix {
                    true => follow(UnixStream::connect(&client_path).unwrap(), &client),
                    false => follow(relay.connect(), &client),
                };
                [client, server.join().unwrap()]
            });
            assert_eq!(ends, [Outcome::Clean(bytes + 1), Outcome::Clean(bytes)]);
        }
    }
    assert_eq!(relay.drain().ended(EndReason::Clean), 6);
}

#[test]
fn half_closed_connections_are_relayed() {
    let (target, address) = listener();
    let relay = Relay::start(config([address]));
    let mut client = relay.connect();
    client.write_all(b"question").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut server = target.accept().unwrap().0;
    let mut question = String::new();
    server.read_to_string(&mut question).unwrap();
    assert_eq!(question, "question");
    // The other direction stays open.
    for word in ["an", "swer"] {
        server.write_all(word.as_bytes()).unwrap();
        let mut received = vec![0; word.len()];
        client.read_exact(&mut received).unwrap();
        assert_eq!(received, word.as_bytes());
    }
    drop(server);
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);

    // The same test with a server that closes first.
    let mut client = relay.connect();
    let mut server = target.accept().unwrap().0;
    server.write_all(b"banner").unwrap();
    server.shutdown(Shutdown::Write).unwrap();
    let mut banner = String::new();
    client.read_to_string(&mut banner).unwrap();
    client.write_all(b"late").unwrap();
    drop(client);
    let mut late = String::new();
    server.read_to_string(&mut late).unwrap();
    assert_eq!((banner.as_str(), late.as_str()), ("banner", "late"));
    assert_eq!(relay.drain().ended(EndReason::Clean), 2);
}
