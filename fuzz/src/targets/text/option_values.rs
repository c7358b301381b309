//! Parses the values of options: sizes, times, rates, addresses, networks, positions and moments.
//! Also parses the text of settings that `haul tune` has made persistent.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haul_append_log::Lsn;
use haul_disk::File;
use haul_file_store::Etag;
use haul_line_log::{Clock, StampFormat, Stamper, parse_moment, split_stamp};
use haul_reactor::{Address, HostAddress, Rate};
use haul_tcp_relay::proxy::Network;
use haul_transfer::Mtime;
use haul_tuning::{Load, parse_persisted};
use haul_units::{parse_bytes, parse_bytes_decimal, parse_time};

/// A clock at a fixed time, an hour ahead of UTC in the second half of each year.
#[derive(Debug)]
struct FixedClock;

impl Clock for FixedClock {
    fn now_us(&self) -> u64 {
        1_795_245_794_500_000
    }

    fn modified_us(&self, _file: &dyn File) -> Option<u64> {
        None
    }

    fn local_offset(&self, utc: i64) -> i64 {
        if utc.rem_euclid(31_557_600) < 15_778_800 { 0 } else { 3600 }
    }
}

/// Checks one input.
pub(crate) fn run(data: &[u8]) {
    check_stamps(data);
    let Ok(text) = str::from_utf8(data) else { return };
    if let (Ok(binary), Ok(decimal)) = (parse_bytes(text), parse_bytes_decimal(text)) {
        assert!(decimal <= binary, "{text}: {decimal} and {binary}");
    }
    if let Ok(time) = parse_time(text) {
        assert_eq!(parse_time(&format!("{}ms", time.as_millis())), Ok(time));
    }
    if let Ok(rate) = text.parse::<Rate>() {
        assert!(rate.interval() > Duration::ZERO, "{rate:?}");
    }
    if let Ok(address) = text.parse::<Address>() {
        assert_eq!(text.parse::<HostAddress>(), Ok(HostAddress::Address(address.clone())));
        assert_eq!(address.to_string().parse(), Ok(address));
    }
    if let Ok(network) = text.parse::<Network>() {
        assert_eq!(network.to_string().parse(), Ok(network));
    }
    if let Ok(lsn) = text.parse::<Lsn>() {
        assert_eq!(lsn.to_string().parse::<Lsn>().ok(), Some(lsn));
    }
    if let Ok(etag) = text.parse::<Etag>() {
        assert_eq!(etag.to_string().parse(), Ok(etag));
    }
    if let Ok(mtime) = text.parse::<Mtime>() {
        assert_eq!(mtime.to_string().parse(), Ok(mtime));
    }
    if let Some(settings) = parse_persisted(text) {
        assert_eq!(haul_tuning::persisted_text(&settings), text);
    }
    if let Ok(moment) = parse_moment(text, &FixedClock) {
        assert!(moment >= UNIX_EPOCH);
    }
    let load = Load::parse(text, 2);
    assert!(load.is_none() || text.split_whitespace().next().is_some());
}

/// Splits a line from its timestamp, and from each of those that a log adds.
fn check_stamps(line: &[u8]) {
    let (found, text) = split_stamp(line);
    assert!(line.ends_with(text) && (found.is_some() || text.len() == line.len()));
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let now: SystemTime = UNIX_EPOCH + Duration::from_micros(FixedClock.now_us());
    for format in [StampFormat::Utc, StampFormat::Unix, StampFormat::Tai64n] {
        let stamped = Stamper::new(format).stamp(line, now).to_vec();
        let (time, text) = split_stamp(&stamped);
        if !line.is_empty() {
            assert_eq!((time.and_then(haul_line_log::Utc::time), text), (Some(now), line));
        }
    }
}
