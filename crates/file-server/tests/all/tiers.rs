//! The tiers of responses, and their effect on the page cache.

use std::time::{Duration, Instant};

use haul_file_server::{Cold, Tier};

use crate::client::{Client, get};
use crate::helper::{ServedDir, evict, noise, resident};

const BIG: usize = 8 << 20;

#[test]
fn cold_download_leaves_no_page_in_the_cache() {
    for cold in [Cold::Copy, Cold::Splice] {
        let place = ServedDir::new();
        let bytes = noise(1, BIG + 1234);
        let path = place.write_cold("big", &bytes);
        let running = place.serve(|config| config.tiers.cold = cold);
        assert!(get(running.address, "/big", "").body == bytes);
        assert_eq!(resident(&path), 0);
        let stats = running.after(1);
        assert_eq!(stats.tier(Tier::Direct), (1, bytes.len() as u64));
        assert_eq!((stats.fallbacks, stats.buffers_refused), (0, 0));
        assert!(stats.buffers_created <= 2, "two alternate: {stats:?}");
    }
}

/// The kernel sends a delayed segment after 200 ms.
#[test]
fn last_segment_of_a_resident_file_is_not_delayed() {
    let place = ServedDir::new();
    let bytes = noise(2, (3 << 20) + 100);
    place.write("big", &bytes);
    let running = place.serve(|_| {});
    let mut client = Client::new(running.address);
    let times = [(); 20].map(|()| {
        let begun = Instant::now();
        assert!(client.get("/big", "").body == bytes);
        // The last bytes are in memory, after a window.
        let parts = client.get("/big", "Range: bytes=0-1999999,3000000-3000009\r\n");
        assert_eq!(parts.status, 206);
        begun.elapsed()
    });
    assert!(times.iter().any(|time| *time < Duration::from_millis(200)), "{times:?}");
    assert_eq!(running.after(40).tier(Tier::Resident).0, 40);
}

#[test]
fn cold_download_without_buffers_drops_its_pages() {
    let place = ServedDir::new();
    let bytes = noise(1, BIG);
    let path = place.write_cold("big", &bytes);
    let running = place.serve(|config| config.tiers.buffers_max = 0);
    assert!(get(running.address, "/big", "").body == bytes);
    let stats = running.after(1);
    assert_eq!(stats.tier(Tier::Uncached), (1, bytes.len() as u64));
    assert!(stats.fallbacks > 0);
    // Pages of the readahead may stay. Kernels before 6.14 cannot drop pages.
    assert!(resident(&path) <= (BIG / 2) as u64, "{} of {BIG}", resident(&path));
}

#[test]
fn cold_file_is_cached_from_the_third_request_on() {
    let place = ServedDir::new();
    let bytes = noise(1, BIG);
    let path = place.write_cold("big", &bytes);
    let running = place.serve(|_| {});
    let mut kept = Vec::new();
    for _ in 0..4 {
        assert!(get(running.address, "/big", "").body == bytes);
        kept.push(resident(&path));
    }
    assert_eq!(kept, [0, 0, BIG as u64, BIG as u64], "the third request promotes the file");
    let stats = running.after(4);
    let of = |tier| stats.tier(tier).1;
    assert_eq!(of(Tier::Direct), 2 * BIG as u64);
    // The kernel reads ahead: a part of the third download is resident in time.
    assert!(of(Tier::Read) > 0 && of(Tier::Resident) >= BIG as u64, "{stats:?}");
}

#[test]
fn only_the_requested_part_is_cached() {
    let place = ServedDir::new();
    let path = place.write_cold("big", &noise(1, BIG));
    // The part is the last one, because the kernel reads ahead.
    let running = place.serve(|_| {});
    for _ in 0..5 {
        let part = get(running.address, "/big", "Range: bytes=-100000\r\n");
        assert_eq!(part.body.len(), 100_000);
    }
    let there = resident(&path);
    assert!((100_000..=1 << 20).contains(&there), "{there}");
    assert_eq!(running.after(5).tier(Tier::Resident).0, 2);
}

#[test]
fn file_fetched_in_ranges_leaves_no_page_in_the_cache() {
    let place = ServedDir::new();
    let bytes = noise(1, BIG);
    let path = place.write_cold("big", &bytes);
    let running = place.serve(|_| {});
    let mut client = Client::new(running.address);
    for (number, piece) in bytes.chunks(256 << 10).enumerate() {
        let start = number * (256 << 10);
        let range = format!("Range: bytes={start}-{}\r\n", start + piece.len() - 1);
        assert!(client.get("/big", &range).body == piece);
    }
    assert_eq!(resident(&path), 0);
}

#[test]
fn file_above_the_promotion_limit_is_never_cached() {
    let place = ServedDir::new();
    let path = place.write_cold("big", &noise(1, BIG));
    let running = place.serve(|config| config.tiers.promote_bytes_max = Some(BIG as u64 - 1));
    for _ in 0..5 {
        assert_eq!(get(running.address, "/big", "").body.len(), BIG);
    }
    assert_eq!(resident(&path), 0);
}

#[test]
fn resident_files_are_sent_without_disk_threads() {
    let place = ServedDir::new();
    let bytes = noise(1, BIG);
    place.write("big", &bytes);
    place.write("small", "12345");
    let running = place.serve(|_| {});
    let twice = || {
        assert!(get(running.address, "/big", "").body == bytes);
        assert_eq!(get(running.address, "/small", "").text(), "12345");
    };
    twice();
    let first = running.after(2);
    assert_eq!(first.disk_jobs, 2, "lookups of encoded forms");
    twice();
    let stats = running.after(4);
    assert_eq!(stats.tier(Tier::Resident), (3, 2 * BIG as u64 + 5), "the small file was read once");
    assert_eq!(stats.tier(Tier::Memory), (1, 5));
    assert_eq!((stats.disk_jobs, stats.buffers_created), (2, 0), "no request waited for a disk");
}

/// The kernel does not report the residency of files of other users.
#[test]
fn resident_files_of_another_user_are_sent_without_disk_threads() {
    let place = ServedDir::new();
    let bytes = noise(1, BIG);
    let path = place.write("big", &bytes);
    place.write("small", "12345");
    let Some(running) = place.serve_unprivileged() else { return };
    assert!(get(running.address, "/big", "").body == bytes);
    assert_eq!(get(running.address, "/small", "").text(), "12345");
    let stats = running.after(2);
    assert_eq!(stats.tier(Tier::Resident), (2, BIG as u64 + 5), "{stats:?}");
    assert_eq!((stats.disk_jobs, stats.buffers_created), (2, 0), "except lookups of encoded forms");
    evict(&path);
    // For 50 ms, the server assumes that the file is still in memory.
    std::thread::sleep(Duration::from_millis(60));
    assert!(get(running.address, "/big", "").body == bytes);
    let stats = running.after(3);
    assert_eq!(stats.tier(Tier::Direct), (1, BIG as u64), "{stats:?}");
    // The probes may have started reads.
    assert!(resident(&path) <= BIG as u64 / 64, "{}", resident(&path));
}

#[test]
fn partly_resident_file_is_sent_from_both_tiers() {
    let place = ServedDir::new();
    let bytes = noise(1, BIG);
    let half = BIG as u64 / 2;
    // The kernel may reclaim pages in any round.
    let rounds = [0, 1, 2].map(|round| {
        let path = place.write_cold(&format!("big{round}"), &bytes);
        let file = std::fs::File::open(&path).unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random).unwrap();
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut vec![0; BIG / 2], 0).unwrap();
        let running = place.serve(|_| {});
        assert!(get(running.address, &format!("/big{round}"), "").body == bytes);
        let stats = running.after(1);
        let sent = [Tier::Resident, Tier::Direct].map(|tier| stats.tier(tier).1);
        (sent, resident(&path))
    });
    assert!(rounds.contains(&([half, half], half)), "{rounds:?}");
}

#[test]
fn small_files_are_cached_and_longer_ones_kept_open() {
    let place = ServedDir::new();
    let path = place.write_cold("small", &noise(1, 60_000));
    place.write("longer", noise(2, 70_000));
    let running = place.serve(|_| {});
    let mut client = Client::new(running.address);
    for _ in 0..3 {
        assert_eq!(client.get("/small", "").body.len(), 60_000);
        assert_eq!(client.get("/longer", "").body.len(), 70_000);
    }
    evict(&path);
    assert_eq!(client.get("/small", "").body, noise(1, 60_000), "from the application cache");
    let stats = running.after(7);
    assert_eq!((stats.tier(Tier::Read).0, stats.tier(Tier::Memory).0), (1, 3));
    assert_eq!((stats.cached_files, stats.open_files), (1, 1));
    assert!((60_000..65_000).contains(&stats.cached_bytes), "{stats:?}");
}

#[test]
fn file_without_encoded_forms_is_cached_once_for_all_clients() {
    let place = ServedDir::new();
    place.write("small", "12345");
    place.write("longer", noise(2, 70_000));
    place.write("formed", "12345");
    place.write("formed.gz", "1234");
    let running = place.serve(|_| {});
    for accept in ["", "gzip", "br, gzip", "zstd;q=0.5, gzip", "*"] {
        for target in ["/small", "/longer", "/formed"] {
            get(running.address, target, &format!("Accept-Encoding: {accept}\r\n"));
        }
    }
    let stats = running.after(15);
    assert_eq!((stats.cached_files, stats.open_files), (1 + 5, 1), "{stats:?}");
}

#[test]
fn cache_stays_within_its_limit() {
    let place = ServedDir::new();
    for name in 0..200 {
        place.write(name.to_string(), noise(name, 20_000));
    }
    let bound = 1 << 20;
    let running = place.serve(|config| config.tiers.cache_bytes = Some(bound));
    let mut client = Client::new(running.address);
    for name in (0..200).chain(0..200) {
        assert_eq!(client.get(&format!("/{name}"), "").body, noise(name, 20_000));
    }
    let stats = running.stats();
    assert!(stats.cached_bytes <= bound && stats.cached_files > 20, "{stats:?}");
    let running = place.serve(|config| config.tiers.cache_bytes = Some(0));
    for _ in 0..2 {
        assert_eq!(get(running.address, "/7", "").body, noise(7, 20_000));
    }
    let stats = running.after(2);
    assert_eq!((stats.cached_files, stats.tier(Tier::Resident).0), (0, 2));
}

#[test]
fn small_file_that_is_looked_up_by_a_disk_thread_is_read_by_the_same_job() {
    let place = ServedDir::new();
    // The kernel has not cached that it has no encoded forms.
    place.write_cold("cold", &noise(1, 10_000));
    place.write("resident", noise(2, 10_000));
    let running = place.serve(|config| config.tiers.valid = Duration::from_hours(1));
    for (name, seed) in [("cold", 1), ("resident", 2)] {
        assert_eq!(get(running.address, &format!("/{name}"), "").body, noise(seed, 10_000));
    }
    let stats = running.after(2);
    assert_eq!((stats.disk_jobs, stats.cached_files), (2, 2));
    assert_eq!((stats.tier(Tier::Read).0, stats.tier(Tier::Resident).0), (1, 1));
}

#[test]
fn cached_file_is_valid_for_the_configured_time() {
    let place = ServedDir::new();
    place.write("a", "first");
    let running = place.serve(|config| config.tiers.valid = Duration::from_hours(1));
    assert_eq!(get(running.address, "/a", "").text(), "first");
    place.write("a", "second");
    assert_eq!(get(running.address, "/a", "").text(), "first");
}
