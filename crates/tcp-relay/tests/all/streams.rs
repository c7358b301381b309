//! Every byte arrives, once and in order, and every end is told.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;

use haul_tcp_relay::{Address, Ended, Moving};

use crate::endpoint::{End, Script, Stream, follow};
use crate::world::{Relay, config, listener};

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
fn both_directions_are_equal_at_both_ends_whatever_the_way() {
    for moving in [Moving::Auto, Moving::Copy, Moving::Splice] {
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
                let relay = Relay::start(haul_tcp_relay::Config { moving, ..config([address]) });
                let (mut near, mut far) = scripts(1, up_bytes, down_bytes, piece);
                (near.reads_late, far.reads_late) = (late[0], late[1]);
                let far = thread::spawn(move || follow(target.accept().unwrap().0, &far));
                let what = format!("{moving:?} {up_bytes} {down_bytes} {piece} {late:?}");
                assert_eq!(follow(relay.connect(), &near), End::Clean(down_bytes), "{what}");
                assert_eq!(far.join().unwrap(), End::Clean(up_bytes), "{what}");
                let stats = relay.drain();
                assert_eq!(stats.ended(Ended::Clean), 1, "{what}");
                let moved = [stats.up, stats.down].map(|m| (m.bytes_copied, m.bytes_spliced));
                let total = moved.map(|(copied, spliced)| copied + spliced);
                assert_eq!(total, [up_bytes, down_bytes], "{what}");
                match moving {
                    Moving::Copy => assert_eq!(moved.map(|moved| moved.1), [0, 0], "{what}"),
                    Moving::Splice => assert_eq!(moved.map(|moved| moved.0), [0, 0], "{what}"),
                    Moving::Auto => {}
                }
            }
        }
    }
}

#[test]
fn unix_sockets_are_relayed_on_either_side() {
    let dir = tempfile::tempdir().unwrap();
    let (near_path, far_path) = (dir.path().join("near"), dir.path().join("far"));
    let target = UnixListener::bind(&far_path).unwrap();
    let mut config = config([Address::Unix(far_path)]);
    config.listen.push(Address::Unix(near_path.clone()));
    let relay = Relay::start(config);
    for (number, bytes, piece) in [(1, 3, 1), (2, 40_000, 512), (3, 6_000_000, 200_000)] {
        for is_unix in [true, false] {
            let (near, far) = scripts(number, bytes, bytes + 1, piece);
            let ends = thread::scope(|scope| {
                let far = scope.spawn(|| follow(target.accept().unwrap().0, &far));
                let near = match is_unix {
                    true => follow(UnixStream::connect(&near_path).unwrap(), &near),
                    false => follow(relay.connect(), &near),
                };
                [near, far.join().unwrap()]
            });
            assert_eq!(ends, [End::Clean(bytes + 1), End::Clean(bytes)]);
        }
    }
    assert_eq!(relay.drain().ended(Ended::Clean), 6);
}

#[test]
fn one_side_may_end_long_before_the_other() {
    let (target, address) = listener();
    let relay = Relay::start(config([address]));
    let mut near = relay.connect();
    near.write_all(b"question").unwrap();
    near.shutdown(Shutdown::Write).unwrap();
    let mut far = target.accept().unwrap().0;
    let mut question = String::new();
    far.read_to_string(&mut question).unwrap();
    assert_eq!(question, "question");
    // The answer comes when it comes.
    for word in ["an", "swer"] {
        far.write_all(word.as_bytes()).unwrap();
        let mut heard = vec![0; word.len()];
        near.read_exact(&mut heard).unwrap();
        assert_eq!(heard, word.as_bytes());
    }
    drop(far);
    assert_eq!(near.read(&mut [0; 1]).unwrap(), 0);

    // And the other way round.
    let mut near = relay.connect();
    let mut far = target.accept().unwrap().0;
    far.write_all(b"banner").unwrap();
    far.shutdown(Shutdown::Write).unwrap();
    let mut banner = String::new();
    near.read_to_string(&mut banner).unwrap();
    near.write_all(b"late").unwrap();
    drop(near);
    let mut late = String::new();
    far.read_to_string(&mut late).unwrap();
    assert_eq!((banner.as_str(), late.as_str()), ("banner", "late"));
    assert_eq!(relay.drain().ended(Ended::Clean), 2);
}
