//! Many clients that go away whenever they like, and none gets another one's byte.

use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

use super::bodies::{FRAMES, LENGTHS, noisy, request};
use super::{Http, client, http, noise};
use crate::endpoint::mix;

/// One connection: some exchanges, until it is cut off at a point that the seed says.
fn connection(relay: &Http, seed: u64, whole: &AtomicU64) {
    let mut client = client(relay);
    for turn in 0..4 {
        let random = |what: u64, below: usize| {
            usize::try_from(mix(seed << 8 | turn << 4 | what) % below as u64).unwrap()
        };
        let frame = FRAMES[random(0, FRAMES.len())];
        let (up, down) = (LENGTHS[random(1, 6)], LENGTHS[random(2, 6)]);
        let number = mix(seed << 8 | turn) >> 16;
        let asked = request(frame, number, up, down);
        match random(3, 4) {
            0 => {
                let bytes = random(4, asked.len());
                client.try_send(&asked[..bytes]).ok();
                return client.reset();
            }
            1 => {
                client.send(&asked);
                client.head().unwrap();
                // Some of the body stays unread, where it has so much.
                if frame == "length" {
                    let body = client.body(random(5, down + 1)).unwrap();
                    assert!(body == noise(number + 1, down)[..body.len()], "a foreign byte");
                }
                return client.reset();
            }
            _ => {
                let response = client.ask(&asked);
                assert!(response.body == noise(number + 1, down), "{frame} {up} {down}");
                whole.fetch_add(1, SeqCst);
                if frame == "close" {
                    return;
                }
            }
        }
    }
}

#[test]
fn clients_that_go_away_at_any_point_leave_no_byte_to_others() {
    let seed = env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("SEED={seed}");
    let (relay, whole) = (Arc::new(http([noisy(), noisy(), noisy()])), AtomicU64::new(0));
    thread::scope(|scope| {
        for thread in 0..8_u64 {
            let (relay, whole) = (&relay, &whole);
            scope.spawn(move || {
                for turn in 0..60 {
                    connection(relay, seed << 20 | thread << 10 | turn, whole);
                }
            });
        }
    });
    assert!(whole.load(SeqCst) > 200, "too few came to their end: {whole:?}");
    let stats = relay.until(|stats| stats.active == 0 && stats.pipes.leased == 0);
    assert_eq!(stats.targets.iter().map(|target| target.active).sum::<u64>(), 0);
    assert_eq!(stats.http.answered(400) + stats.http.answered(502), 0);
}
