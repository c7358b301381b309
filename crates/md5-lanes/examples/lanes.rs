//! Prints the time per byte of MD5 in each number of lanes, and of a queue that threads share.
//!
//! ```text
//! cargo run --release -p haul-md5-lanes --example lanes
//! ```
#![expect(clippy::print_stdout, reason = "a program that prints what it measured")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use haul_md5_lanes::{Lanes, Md5Queue};
use md5::{Digest, Md5};

/// Duration of one measurement.
const DURATION: Duration = Duration::from_millis(100);

fn main() {
    println!("ns per byte; the fastest of the calls within {DURATION:?}");
    let lanes = Lanes::available();
    let head: String = lanes.iter().map(|lanes| format!("{:>9}", lanes.count())).collect();
    println!("{:>6} {:>8} {:>7} {:>7}{head}  lanes", "KiB", "messages", "md-5", "queue");
    for kib in [2, 4, 16, 64] {
        for count in 1..=16 {
            // Offsets differ, so that the messages do not compete for the same lines of the cache.
            let all = vec![7; (kib * 1024 + 64) * count];
            let messages: Vec<&[u8]> =
                all.chunks(kib * 1024 + 64).map(|message| &message[..kib * 1024]).collect();
            let bytes = count * kib * 1024;
            let each = |digest: &dyn Fn(&[u8]) -> [u8; 16]| {
                fastest(bytes, &|| {
                    for message in &messages {
                        black_box(digest(message));
                    }
                })
            };
            let queue = Md5Queue::default();
            let md5 = each(&|message| Md5::digest(message).into());
            let queued = each(&|message| queue.digest(message));
            let many = |lanes: &Lanes| fastest(bytes, &|| drop(lanes.digest_many(&messages)));
            let many: String = lanes.iter().map(|lanes| format!("{:9.3}", many(lanes))).collect();
            println!("{kib:>6} {count:>8} {md5:7.3} {queued:7.3}{many}");
        }
    }
}

/// Returns the nanoseconds per byte of the fastest call.
fn fastest(bytes: usize, work: &dyn Fn()) -> f64 {
    let begin = Instant::now();
    let mut fastest = Duration::MAX;
    while begin.elapsed() < DURATION {
        let call = Instant::now();
        work();
        fastest = fastest.min(call.elapsed());
    }
    let bytes = u32::try_from(bytes).expect("a few MiB");
    fastest.as_secs_f64() * 1e9 / f64::from(bytes)
}
