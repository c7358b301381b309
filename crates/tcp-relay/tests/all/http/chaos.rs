//! Tests with clients that disconnect at random points: no client receives bytes of another.

use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

use haul_tcp_relay::HttpOptions;
use haul_testing::{Random, Transport, over};

use super::bodies::{FRAMES, LENGTHS, noise_target, request};
use super::{Http, client_over, http_over, noise};

over!(Plain Inherited Tls => (
    disconnecting_clients_leak_no_bytes_to_others,
));

/// Runs up to four exchanges on one connection, which the client may close at any point, depending
/// on `seed`.
fn connection(relay: &Http, seed: u64, completed: &AtomicU64) {
    let mut client = client_over(relay);
    for turn in 0..4 {
        let random = |what: u64, below: usize| {
            usize::try_from(Random(seed << 8 | turn << 4 | what).number() % below as u64).unwrap()
        };
        let frame = FRAMES[random(0, FRAMES.len())];
        let (up, down) = (LENGTHS[random(1, 6)], LENGTHS[random(2, 6)]);
        let number = Random(seed << 8 | turn).number() >> 16;
        let request_bytes = request(frame, number, up, down);
        match random(3, 4) {
            0 => {
                let bytes = random(4, request_bytes.len());
                client.try_send(&request_bytes[..bytes]).ok();
                return client.reset();
            }
            1 => {
                client.send(&request_bytes);
                client.head().unwrap();
                // Part of the body stays unread.
                if frame == "length" {
                    let body = client.body(random(5, down + 1)).unwrap();
                    assert!(body == noise(number + 1, down)[..body.len()], "a foreign byte");
                }
                return client.reset();
            }
            _ => {
                let response = client.exchange(&request_bytes);
                assert!(response.body == noise(number + 1, down), "{frame} {up} {down}");
                completed.fetch_add(1, SeqCst);
                if frame == "close" {
                    return;
                }
            }
        }
    }
}

fn disconnecting_clients_leak_no_bytes_to_others(transport: Transport) {
    let seed = env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("SEED={seed}");
    let (relay, completed) = (
        Arc::new(http_over(
            transport,
            [noise_target(), noise_target(), noise_target()],
            HttpOptions::default(),
            |_| {},
        )),
        AtomicU64::new(0),
    );
    thread::scope(|scope| {
        for thread in 0..8_u64 {
            let (relay, completed) = (&relay, &completed);
            scope.spawn(move || {
                for turn in 0..60 {
                    connection(relay, seed << 20 | thread << 10 | turn, completed);
                }
            });
        }
    });
    assert!(completed.load(SeqCst) > 200, "too few exchanges completed: {completed:?}");
    let stats = relay.until(|stats| stats.active == 0 && stats.pipes.leased == 0);
    assert_eq!(stats.targets.iter().map(|target| target.active).sum::<u64>(), 0);
    assert_eq!(stats.http.error_responses(400) + stats.http.error_responses(502), 0);
}
