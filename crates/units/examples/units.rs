//! Parses sizes and durations as people write them, and prints them as people read them.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::time::Duration;

use haul_units::{Bytes, Grouped, Time, parse_bytes, parse_time};

fn main() {
    assert_eq!(parse_bytes("1.5MiB"), Ok(3 << 19));
    assert_eq!(parse_time("1h30m"), Ok(Duration::from_secs(5400)));
    println!("{}, {}, {}", Bytes(3 << 19), Grouped(1_572_864), Time(Duration::from_millis(1500)));
    println!("{:?}", parse_bytes("1.5 parsecs"));
}
