//! Range requests, in all tiers.

use haul_file_server::{Cold, Config, Tier};
use haul_testing::{Random, Transport, over};

use crate::client::{Answer, Client, get};
use crate::helper::{ServedDir, evict, noise};

over!(Plain Inherited Tls => (
    single_range_is_a_partial_response,
    if_range_with_another_version_gets_the_whole_file,
    several_ranges_are_parts_in_the_requested_order,
    ranges_read_directly_equal_the_file,
    ranges_spliced_directly_equal_the_file,
    ranges_spliced_through_the_page_cache_equal_the_file,
    ranges_read_through_the_page_cache_equal_the_file,
    ranges_read_without_a_buffer_equal_the_file,
    ranges_of_the_page_cache_equal_the_file,
    ranges_of_a_cached_file_equal_the_file,
));

/// Parses a `multipart/byteranges` body; returns the ranges and bytes of its parts.
fn parts(answer: &Answer) -> Vec<(String, Vec<u8>)> {
    let boundary = answer.field("content-type").unwrap();
    let boundary = boundary.strip_prefix("multipart/byteranges; boundary=").unwrap();
    let find = |bytes: &[u8], what: &str| {
        bytes.windows(what.len()).position(|window| window == what.as_bytes())
    };
    let mut rest = &answer.body[..];
    let mut parts = Vec::new();
    loop {
        let delimiter = format!("\r\n--{boundary}");
        let at = find(rest, &delimiter).unwrap();
        if !parts.is_empty() {
            let (_, bytes): &mut (String, Vec<u8>) = parts.last_mut().unwrap();
            bytes.extend_from_slice(&rest[..at]);
        }
        rest = &rest[at + delimiter.len()..];
        if rest == b"--\r\n" {
            return parts;
        }
        let end = find(rest, "\r\n\r\n").unwrap();
        let head = std::str::from_utf8(&rest[..end]).unwrap();
        assert!(head.contains("\r\nContent-Type: "), "{head}");
        let range = head.split("Content-Range: ").nth(1).unwrap().split("\r\n").next().unwrap();
        parts.push((range.to_owned(), Vec::new()));
        rest = &rest[end + 4..];
    }
}

fn single_range_is_a_partial_response(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write("a", "0123456789");
    place.write("empty", "");
    let running = place.serve(|_| {});
    let mut client = Client::new(running.address);
    for (range, status, body, expected) in [
        ("bytes=0-3", 206, "0123", Some("bytes 0-3/10")),
        ("bytes=-3", 206, "789", Some("bytes 7-9/10")),
        ("bytes=4-", 206, "456789", Some("bytes 4-9/10")),
        ("bytes=0-99", 206, "0123456789", Some("bytes 0-9/10")),
        ("bytes=9-9,20-", 206, "9", Some("bytes 9-9/10")),
        ("bytes=10-", 416, "416 Range Not Satisfiable\n", Some("bytes */10")),
        ("bytes=-0", 416, "416 Range Not Satisfiable\n", Some("bytes */10")),
        ("bytes=5-4", 200, "0123456789", None),
        ("lines=0-1", 200, "0123456789", None),
        ("bytes=0-9,0-9", 200, "0123456789", None),
    ] {
        let answer = client.get("/a", &format!("Range: {range}\r\n"));
        assert_eq!((answer.status, answer.text()), (status, body), "{range}");
        assert_eq!(answer.field("content-range"), expected, "{range}");
    }
    assert_eq!(client.get("/empty", "Range: bytes=0-9\r\n").status, 200);
}

fn if_range_with_another_version_gets_the_whole_file(transport: Transport) {
    let place = ServedDir::over(transport);
    place.write_old("a", "0123456789");
    let running = place.serve(|_| {});
    let whole = get(running.address, "/a", "");
    let (tag, date) = (whole.field("etag").unwrap(), whole.field("last-modified").unwrap());
    for (value, status) in [
        (tag, 206),
        // Another file of the same date may have been here: a link or a directory is replaced.
        (date, 200),
        ("\"x\"", 200),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 200),
        ("x", 200),
    ] {
        let fields = format!("Range: bytes=1-2\r\nIf-Range: {value}\r\n");
        assert_eq!(get(running.address, "/a", &fields).status, status, "{value}");
    }
    let fields = "Range: bytes=20-\r\nIf-Range: \"x\"\r\n";
    assert_eq!(get(running.address, "/a", fields).status, 200, "not even 416");
}

fn several_ranges_are_parts_in_the_requested_order(transport: Transport) {
    let place = ServedDir::over(transport);
    let bytes = noise(1, 3 << 20);
    place.write("small.txt", &bytes[..100]);
    place.write_cold("cold", &bytes);
    place.write("warm", &bytes);
    let running = place.serve(|_| {});
    let mut client = Client::new(running.address);
    let answer = client.get("/small.txt", "Range: bytes=90-, 0-4,50-50\r\n");
    assert_eq!(answer.status, 206);
    let expected = [
        ("bytes 90-99/100".to_owned(), bytes[90..100].to_vec()),
        ("bytes 0-4/100".to_owned(), bytes[..5].to_vec()),
        ("bytes 50-50/100".to_owned(), bytes[50..51].to_vec()),
    ];
    assert_eq!(parts(&answer), expected);
    for name in ["/cold", "/warm"] {
        let answer = client.get(name, "Range: bytes=2000000-2999999,7-1500000,-1\r\n");
        let parts = parts(&answer);
        let all: Vec<&[u8]> = parts.iter().map(|part| &*part.1).collect();
        let wanted = [&bytes[2_000_000..3_000_000], &bytes[7..=1_500_000], &bytes[(3 << 20) - 1..]];
        assert!(all == wanted, "{name}");
    }
    // The next response begins after the last one.
    assert_eq!(client.get("/small.txt", "").body, &bytes[..100]);
}

/// Requests random ranges of a file, and compares them with the file.
fn random_ranges(
    transport: Transport,
    change: impl FnOnce(&mut Config),
    tier: Tier,
    is_cold: bool,
) {
    let place = ServedDir::over(transport);
    let mut random = Random::from_environment();
    let bytes = noise(random.0, (4 << 20) + 12_345);
    let path = place.write("file", &bytes);
    let running = place.serve(change);
    let mut client = Client::new(running.address);
    for _ in 0..60 {
        if is_cold {
            evict(&path);
        }
        let length = bytes.len() as u64;
        let start = random.below(length);
        let longest = [100, 5000, 70_000, length][usize::try_from(random.below(4)).unwrap()];
        let end = (start + 1 + random.below(longest)).min(length);
        let answer = client.get("/file", &format!("Range: bytes={start}-{}\r\n", end - 1));
        assert_eq!(answer.status, 206);
        let (start, end) = (usize::try_from(start).unwrap(), usize::try_from(end).unwrap());
        assert!(answer.body == bytes[start..end], "{start}..{end} of {}", bytes.len());
    }
    let stats = running.after(60);
    let (requests, _) = stats.tier(tier);
    // The kernel's readahead makes some ranges resident.
    let least = if tier == Tier::Read { 30 } else { 59 };
    assert!(requests >= least, "{requests} of {tier:?}: {stats:?}");
    if tier == Tier::Direct {
        assert_eq!(stats.fallbacks, 0);
    }
    running.wait_until("all buffers are released", |stats| stats.buffers_leased == 0);
}

fn ranges_read_directly_equal_the_file(transport: Transport) {
    random_ranges(transport, |config| config.tiers.promote_asked = u32::MAX, Tier::Direct, true);
}

fn ranges_spliced_directly_equal_the_file(transport: Transport) {
    let splice = |config: &mut Config| {
        config.tiers.promote_asked = u32::MAX;
        config.tiers.cold = Cold::Splice;
    };
    random_ranges(transport, splice, Tier::Direct, true);
}

fn ranges_spliced_through_the_page_cache_equal_the_file(transport: Transport) {
    let splice = |config: &mut Config| {
        config.tiers.promote_asked = 1;
        config.tiers.cold = Cold::Splice;
    };
    random_ranges(transport, splice, Tier::Read, true);
}

fn ranges_read_through_the_page_cache_equal_the_file(transport: Transport) {
    random_ranges(transport, |config| config.tiers.promote_asked = 1, Tier::Read, true);
}

fn ranges_read_without_a_buffer_equal_the_file(transport: Transport) {
    let none = |config: &mut Config| {
        config.tiers.promote_asked = u32::MAX;
        config.tiers.buffers_max = 0;
    };
    random_ranges(transport, none, Tier::Uncached, true);
}

fn ranges_of_the_page_cache_equal_the_file(transport: Transport) {
    random_ranges(transport, |_| {}, Tier::Resident, false);
}

fn ranges_of_a_cached_file_equal_the_file(transport: Transport) {
    random_ranges(
        transport,
        |config| config.tiers.cache_object_bytes_max = 8 << 20,
        Tier::Memory,
        false,
    );
}
