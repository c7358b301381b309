//! Tests that bodies arrive intact in both directions, with every framing.

use std::sync::Arc;
use std::thread;

use haul_tcp_relay::{HttpOptions, TransferMode};
use haul_testing::{Transport, over};

use super::{chunked, client_over, http_over, noise, ok, target};

over!(Plain Inherited Tls => (
    bodies_of_any_length_and_framing_arrive_intact,
    bodies_do_not_consume_pipelined_requests,
    concurrent_clients_receive_only_their_own_bytes,
    slow_reader_does_not_delay_other_clients,
));

/// A target that responds with pseudorandom bytes, whose framing, seed and length are given in the
/// path. It also verifies the pseudorandom bytes of the request body.
pub(crate) fn noise_target() -> haul_tcp_relay::Address {
    target(|_, mut peer| {
        while let Ok(Some(request)) = peer.request() {
            let words: Vec<_> = request.line.split([' ', '/']).collect();
            let [_, _, frame, seed, bytes, ..] = words[..] else { panic!("{}", request.line) };
            let (seed, bytes) = (seed.parse().unwrap(), bytes.parse().unwrap());
            assert!(
                request.body == noise(seed, request.body.len()),
                "the body of {}",
                request.line
            );
            let body = noise(seed + 1, bytes);
            if peer.try_send(framed(&body, frame)).is_err() || frame == "close" {
                return;
            }
        }
    })
}

fn framed(body: &[u8], frame: &str) -> Vec<u8> {
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    match frame {
        "length" => ok(body),
        "close" => [b"HTTP/1.1 200 OK\r\n\r\n", body].concat(),
        "small" => [&head[..], &chunked(body, &[1, 7, 300, 4000])].concat(),
        "large" => [&head[..], &chunked(body, &[100_000, 40_000, 9])].concat(),
        "one" => [&head[..], &chunked(body, &[usize::MAX])].concat(),
        _ => unreachable!("{frame}"),
    }
}

pub(crate) fn request(frame: &str, seed: u64, up: usize, down: usize) -> Vec<u8> {
    let body = noise(seed, up);
    let line = format!("POST /{}/{seed}/{down} HTTP/1.1\r\nHost: a\r\n", frame);
    let (field, body) = match frame {
        "length" | "close" => (format!("Content-Length: {up}"), body),
        "small" => ("Transfer-Encoding: chunked".to_owned(), chunked(&body, &[5, 1, 2000])),
        "large" => ("Transfer-Encoding: chunked".to_owned(), chunked(&body, &[70_000, 1])),
        _ => ("Transfer-Encoding: chunked".to_owned(), chunked(&body, &[usize::MAX])),
    };
    [line.as_bytes(), field.as_bytes(), b"\r\n\r\n", &body].concat()
}

pub(crate) const FRAMES: [&str; 5] = ["length", "close", "small", "large", "one"];
pub(crate) const LENGTHS: [usize; 8] = [0, 1, 100, 16_384, 32_768, 70_001, 1 << 20, 3_000_001];

fn bodies_of_any_length_and_framing_arrive_intact(transport: Transport) {
    for transfer_mode in [TransferMode::Auto, TransferMode::Copy, TransferMode::Splice] {
        let relay = http_over(transport, [noise_target()], HttpOptions::default(), |config| {
            config.transfer_mode = transfer_mode
        });
        let mut client = client_over(&relay);
        for (number, (frame, bytes)) in
            FRAMES.iter().flat_map(|frame| LENGTHS.map(|bytes| (frame, bytes))).enumerate()
        {
            let (up, down) = (bytes, LENGTHS[(number * 3) % LENGTHS.len()]);
            let response = client.exchange(request(frame, number as u64, up, down));
            let what = format!("{transfer_mode:?} {frame} {up} {down}");
            assert!(response.body == noise(number as u64 + 1, down), "{what}");
            if *frame == "close" {
                assert_eq!(response.all("connection"), ["close"], "{what}");
                client = client_over(&relay);
            }
        }
        let stats = relay.stats();
        let spliced = [stats.up.bytes_spliced, stats.down.bytes_spliced];
        match transfer_mode {
            _ if transport == Transport::Tls => assert_eq!(spliced, [0, 0]),
            TransferMode::Copy => assert_eq!(spliced, [0, 0]),
            _ => assert!(spliced.iter().all(|bytes| *bytes > 10_000_000), "{spliced:?}"),
        }
    }
}

fn bodies_do_not_consume_pipelined_requests(transport: Transport) {
    let relay = http_over(transport, [noise_target()], HttpOptions::default(), |_| {});
    let mut client = client_over(&relay);
    let mut both = request("length", 5, 500_000, 3);
    both.extend(request("length", 6, 10, 4));
    both.extend(request("large", 7, 300_000, 5));
    both.extend(request("one", 8, 100_000, 6));
    client.send(&both);
    for (seed, bytes) in [(5, 3), (6, 4), (7, 5), (8, 6)] {
        assert_eq!(client.response().unwrap().body, noise(seed + 1, bytes));
    }
}

fn concurrent_clients_receive_only_their_own_bytes(transport: Transport) {
    let relay = Arc::new(http_over(
        transport,
        [noise_target(), noise_target()],
        HttpOptions::default(),
        |_| {},
    ));
    thread::scope(|scope| {
        for client_number in 0..8_u64 {
            let relay = Arc::clone(&relay);
            scope.spawn(move || {
                let mut client = client_over(&relay);
                for turn in 0..40_usize {
                    let frame = ["length", "small", "large", "one"][turn % 4];
                    let seed = client_number * 1000 + turn as u64;
                    let (up, down) = (LENGTHS[turn % 7], LENGTHS[(turn * 5 + 1) % 7]);
                    let response = client.exchange(request(frame, seed, up, down));
                    assert!(response.body == noise(seed + 1, down), "{seed}");
                }
            });
        }
    });
    // Idle connections lease no pipe.
    relay.until(|stats| stats.pipes.leased == 0);
}

fn slow_reader_does_not_delay_other_clients(transport: Transport) {
    let relay = http_over(transport, [noise_target()], HttpOptions::default(), |_| {});
    let mut slow = client_over(&relay);
    slow.send(request("length", 1, 0, 30_000_000));
    // The client reads nothing yet, so its response is blocked.
    relay.until(|stats| stats.down.bytes_copied + stats.down.bytes_spliced > 1 << 20);
    let mut fast = client_over(&relay);
    for seed in 10..30 {
        assert_eq!(fast.exchange(request("length", seed, 10, 10)).body, noise(seed + 1, 10));
    }
    assert!(slow.response().unwrap().body == noise(2, 30_000_000));
}
