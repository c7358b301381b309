//! Compares the model with data sheets, and checks that its times and counters are consistent.

use haul_testing::Random;

use super::*;

const GIB: u64 = 1 << 30;
const PAGE: u64 = 8;

fn drive(parameters: &Parameters) -> Drive {
    Drive::new(parameters.clone(), 16 * GIB)
}

const SECTORS: u64 = 16 * GIB / SECTOR_BYTES;

fn at(kind: Kind, sector: u64, sectors: u64, arrived_ns: Nanos) -> Request {
    Request { kind, sector, sectors, arrived_ns }
}

/// Serves generated requests, of which `depth` are always waiting; returns the virtual time in
/// seconds.
fn serve_at_depth(
    drive: &mut Drive,
    depth: usize,
    count: usize,
    mut next: impl FnMut() -> (Kind, u64, u64),
) -> f64 {
    let began = drive.free_ns();
    let mut waiting = Vec::new();
    for _ in 0..count {
        while waiting.len() < depth {
            let (kind, sector, sectors) = next();
            waiting.push(at(kind, sector, sectors, drive.free_ns()));
        }
        let chosen = drive.choose(&waiting).unwrap();
        let request = waiting.remove(chosen);
        drive.serve(&request);
    }
    (drive.free_ns() - began) as f64 / 1e9
}

#[test]
fn random_read_rate_matches_the_data_sheets() {
    for (parameters, at_depth_1) in Parameters::all().into_iter().zip([62.0, 79.0]) {
        let mut rates = Vec::new();
        for depth in [1, 2, 4, 8, 16, 32] {
            let (mut drive, mut random) = (drive(&parameters), Random(7));
            let next = || (Kind::Read, random.below(SECTORS / PAGE) * PAGE, PAGE);
            rates.push(2000.0 / serve_at_depth(&mut drive, depth, 2000, next));
        }
        println!("{}: {rates:.1?} reads a second", parameters.name);
        assert!((rates[0] / at_depth_1 - 1.0).abs() < 0.05, "{rates:?}");
        assert!(rates.is_sorted(), "{rates:?}");
        let gain = rates[5] / rates[0];
        assert!((1.5..2.5).contains(&gain), "a deep queue gains {gain}");
    }
}

#[test]
fn read_ahead_in_a_pause_counts_as_reading_time() {
    let mut drive = drive(&Parameters::travelstar_7k320());
    let read = |drive: &mut Drive, sector: u64, pause_ns: Nanos| {
        let arrived_ns = drive.free_ns() + pause_ns;
        drive.serve(&at(Kind::Read, sector, PAGE, arrived_ns));
    };
    read(&mut drive, 1000, 0);
    let first = *drive.counters();
    assert_eq!(first.read_ahead_ns, 0);
    // The head reads on during the pause, so the next request is served from the cache.
    read(&mut drive, 1000 + 100 * PAGE, 6 * MS);
    let second = drive.counters().since(&first);
    assert_eq!((second.cache_hits, second.read_ahead_ns), (1, 6 * MS));
    assert!(second.service_ns() < MS && second.reading_ns() == second.service_ns() + 6 * MS);
    // Read-ahead ends half a segment ahead: a longer pause is not reading time.
    read(&mut drive, SECTORS - PAGE, 60_000 * MS);
    let third = drive.counters().since(&first);
    assert!(third.read_ahead_ns < 30 * MS, "{third:?}");
}

#[test]
fn sequential_reads_have_the_rate_of_their_zone() {
    for parameters in Parameters::all() {
        let mut drive = drive(&parameters);
        let inner = SECTORS - 300_000;
        for (first, rate) in
            [(0, parameters.outer_bytes_per_s), (inner, parameters.inner_bytes_per_s)]
        {
            for length in [64, 256, 2048] {
                let mut sector = first;
                let next = || {
                    sector += length;
                    (Kind::Read, sector - length, length)
                };
                let count = 200_000 / length;
                let seconds = serve_at_depth(&mut drive, 1, usize::try_from(count).unwrap(), next);
                let each_ns = parameters.overhead_ns + parameters.interface_ns(length);
                let asked = (length * SECTOR_BYTES * 1000 * MS / each_ns).min(rate);
                let part = (count * length * SECTOR_BYTES) as f64 / seconds / asked as f64;
                assert!((0.97..1.03).contains(&part), "{length} sectors: {part} of {asked}");
            }
        }
    }
}

#[test]
fn sequential_writes_reach_the_zone_rate_only_with_write_cache() {
    for mut parameters in Parameters::all() {
        let mut rate = |cache_bytes| {
            parameters.write_cache_bytes = cache_bytes;
            let (mut drive, mut sector) = (drive(&parameters), 0);
            let next = || {
                sector += 256;
                (Kind::Write, sector - 256, 256)
            };
            let seconds = serve_at_depth(&mut drive, 1, 1000, next);
            let synced = drive.serve(&at(Kind::Sync, 0, 0, drive.free_ns()));
            assert!(synced as f64 / 1e9 >= seconds);
            256_000.0 * 512.0 / (synced as f64 / 1e9) / parameters.outer_bytes_per_s as f64
        };
        let (cached, through) = (rate(16 << 20), rate(0));
        assert!((0.95..1.03).contains(&cached), "{cached}");
        assert!(through < 0.4, "each write misses a revolution: {through}");
    }
}

#[test]
fn sorted_small_reads_are_far_faster_than_random_ones() {
    for parameters in Parameters::all() {
        let mut random = Random(3);
        let mut pages: Vec<_> = (0..4000).map(|_| random.below(SECTORS / 32 / PAGE)).collect();
        let seconds = |pages: &[u64]| {
            let (mut drive, mut next) = (drive(&parameters), pages.iter());
            let next = || (Kind::Read, next.next().unwrap() * PAGE, PAGE);
            serve_at_depth(&mut drive, 1, pages.len(), next)
        };
        let unsorted = seconds(&pages);
        pages.sort_unstable();
        let sorted = seconds(&pages);
        println!(
            "{}: {:.0} sorted, {:.0} unsorted a second",
            parameters.name,
            4000.0 / sorted,
            4000.0 / unsorted
        );
        assert!(sorted * 3.0 < unsorted, "{sorted} s, {unsorted} s");
    }
}

#[test]
fn cached_reads_are_fast_and_writes_invalidate_them() {
    let mut drive = drive(&Parameters::travelstar_7k320());
    let mut read = |sector, sectors| {
        let began = drive.free_ns();
        drive.serve(&at(Kind::Read, sector, sectors, began)) - began
    };
    assert!(read(100_000, 8) > MS, "from the medium");
    assert!(read(100_000, 8) < MS, "from the cache");
    assert!(read(100_008, 8) < MS, "read ahead");
    assert!(read(5_000_000, 8) > MS, "another location");
    assert!(read(100_000, 16) < MS, "still cached");
    assert_eq!(drive.counters().cache_hits, 3);

    drive.parameters.write_cache_bytes = 0;
    drive.serve(&at(Kind::Write, 100_000, 8, drive.free_ns()));
    let began = drive.free_ns();
    let done = drive.serve(&at(Kind::Read, 100_000, 8, began));
    assert!(done - began > MS, "a written run is not read from the segment");
}

#[test]
fn cached_reads_are_served_in_arrival_order() {
    let mut drive = drive(&Parameters::travelstar_7k320());
    let read = drive.serve(&at(Kind::Read, 100_000, 8, 0));
    let passed_ns = read + 30 * MS;
    let near = [
        at(Kind::Read, 5_000_000, 8, passed_ns),
        at(Kind::Read, 100_008, 512, passed_ns),
        at(Kind::Read, 100_520, 8, passed_ns),
    ];
    assert_eq!(drive.choose(&near), Some(1), "the shorter one would be done sooner");
}

#[test]
fn short_request_does_not_interrupt_a_sequential_stream() {
    for parameters in Parameters::all() {
        // The kernel splits each read of 1 MiB into two requests, which it queues together.
        let (mut drive, mut sector) = (drive(&parameters), 2048);
        drive.serve(&at(Kind::Read, 0, 2048, 0));
        for _ in 0..200 {
            let arrived = drive.free_ns();
            let long = at(Kind::Read, sector, 1552, arrived);
            let short = at(Kind::Read, sector + 1552, 496, arrived);
            assert_eq!(drive.choose(&[long, short]), Some(0));
            drive.serve(&long);
            drive.serve(&short);
            sector += 2048;
        }
    }
}

#[test]
fn distant_request_does_not_starve() {
    for parameters in Parameters::all() {
        let (mut drive, mut random) = (drive(&parameters), Random(5));
        let mut waiting = vec![at(Kind::Read, SECTORS - PAGE, PAGE, 0)];
        let mut served_far_ns = None;
        while served_far_ns.is_none() {
            while waiting.len() < 40 {
                let near = random.below(2_000_000 / PAGE) * PAGE;
                waiting.push(at(Kind::Read, near, PAGE, drive.free_ns()));
            }
            let request = waiting.remove(drive.choose(&waiting).unwrap());
            let done = drive.serve(&request);
            served_far_ns = (request.sector == SECTORS - PAGE).then_some(done);
        }
        let waited_ns = served_far_ns.unwrap();
        assert!(waited_ns < parameters.patience_ns + 100 * MS, "{waited_ns} ns");
    }
}

#[test]
fn sync_is_not_overtaken_and_empties_the_write_cache() {
    let mut drive = drive(&Parameters::travelstar_7k320());
    let waiting = [at(Kind::Sync, 0, 0, 0), at(Kind::Read, 0, 8, 0), at(Kind::Write, 8, 8, 0)];
    assert_eq!(drive.choose(&waiting), Some(0));
    let far_then_sync = [at(Kind::Read, SECTORS - 8, 8, 0), waiting[0], waiting[1]];
    assert_eq!(drive.choose(&far_then_sync), Some(0), "the near one came after the sync");

    for page in 0..100 {
        drive.serve(&at(Kind::Write, page * 1000, PAGE, drive.free_ns()));
    }
    assert_eq!((drive.counters().cached_writes, drive.counters().media_writes), (100, 0));
    let began = drive.free_ns();
    let took = drive.serve(&at(Kind::Sync, 0, 0, began)) - began;
    assert_eq!(drive.counters().media_writes, 100);
    assert!(took > 20 * MS, "{took} ns");
    let again = drive.serve(&at(Kind::Sync, 0, 0, drive.free_ns())) - began - took;
    assert_eq!(again, drive.parameters.overhead_ns, "the cache was empty");
}

#[test]
fn idle_drive_destages_its_write_cache() {
    let mut drive = drive(&Parameters::travelstar_7k320());
    let done = drive.serve(&at(Kind::Write, 5_000_000, PAGE, 0));
    drive.serve(&at(Kind::Read, 0, PAGE, done + 1000 * MS));
    assert_eq!(drive.counters().media_writes, 1);
    assert!(drive.counters().background.total_ns() > MS);
    let began = drive.free_ns();
    assert!(drive.serve(&at(Kind::Sync, 0, 0, began)) - began < MS, "the cache was empty");
}

fn one_of(random: &mut Random, of: &[u64]) -> u64 {
    of[usize::try_from(random.below(of.len() as u64)).unwrap()]
}

#[test]
fn times_are_monotonic_and_counters_add_up() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut parameters = Parameters::all()[usize::from(random.below(2) == 0)].clone();
        parameters.write_cache_bytes = one_of(&mut random, &[0, 64 << 10, 8 << 20]);
        let (mut drive, mut now, mut asked) = (drive(&parameters), 0, [0; 3]);
        let mut service_ns = 0;
        for _ in 0..1500 {
            now += one_of(&mut random, &[0, 0, MS, 40 * MS]);
            let sectors = 8 * (1 + random.below(40));
            let near = random.below(2) == 0;
            let sector = random.below(if near { 20_000 } else { SECTORS / 8 - 400 }) * 8;
            let request = match random.below(20) {
                0 => at(Kind::Sync, 0, 0, now),
                1..10 => at(Kind::Write, sector, sectors, now),
                _ => at(Kind::Read, sector, sectors, now),
            };
            let began = drive.free_ns().max(now);
            let done = drive.serve(&request);
            assert!(done >= began, "SEED={seed}: {request:?}");
            assert_eq!(done, drive.free_ns());
            service_ns += done - began;
            asked[request.kind as usize] += 1;
        }
        let counters = *drive.counters();
        assert_eq!([counters.reads, counters.writes, counters.syncs], asked, "SEED={seed}");
        assert_eq!(counters.requests, 1500);
        assert_eq!(counters.service_ns(), service_ns, "SEED={seed}");
        assert!(counters.cache_hits + counters.media_reads >= counters.reads, "SEED={seed}");
        let arm_ns = counters.background.arm_ns() + counters.service.arm_ns();
        assert!(counters.seeks * parameters.seek_track_ns <= arm_ns, "SEED={seed}");
    }
}

#[test]
fn short_pauses_do_not_slow_sequential_reads() {
    for parameters in Parameters::all() {
        for gap_ns in [0, MS / 2, 1_400_000, 3 * MS] {
            let (mut drive, mut now, mut sector) = (drive(&parameters), 0, 0);
            for _ in 0..200 {
                for _ in 0..2 {
                    drive.serve(&at(Kind::Read, sector, 1024, now));
                    sector += 1024;
                }
                now = drive.free_ns() + gap_ns;
            }
            let rate = sector * 512 * 1000 / (now / MS);
            let part = rate as f64 / parameters.outer_bytes_per_s as f64;
            assert!((0.97..1.01).contains(&part), "{gap_ns} ns of pause: {part}");
        }
    }
}

#[test]
fn sweep_bound_is_a_lower_bound_and_tight_without_gaps() {
    for parameters in Parameters::all() {
        // The bound ignores caches, so the drive in this test has no caches.
        let parameters = Parameters { segments: 0, write_cache_bytes: 0, ..parameters };
        for (runs, length, slack) in [(1, 40_000, 1.05), (300, PAGE, 9.0), (20_000, PAGE, 99.0)] {
            let mut random = Random(runs);
            let mut sectors: Vec<_> =
                (0..runs).map(|_| random.below(SECTORS / 64 / PAGE) * PAGE).collect();
            sectors.sort_unstable();
            sectors.dedup();
            let bound_ns = drive(&parameters).sweep_ns(sectors.iter().map(|at| (*at, length)));
            let mut drive = drive(&parameters);
            let took = serve_at_depth(&mut drive, 1, sectors.len(), {
                let mut next = sectors.iter();
                move || (Kind::Write, *next.next().unwrap(), length)
            });
            let bound = bound_ns as f64 / 1e9;
            println!("{}: {runs} runs: {took:.2} s, bound {bound:.2} s", parameters.name);
            assert!(bound > 0.0 && took > bound, "{took} s, but {bound} s at least");
            assert!(took < bound * slack, "{took} s, far from {bound} s");
        }
    }
}

#[test]
fn sweep_bound_adds_rotations_and_seeks() {
    let drive = drive(&Parameters::travelstar_7k320());
    let per_track = drive.geometry.locate(0).sectors_per_track;
    let Parameters { revolution_ns, head_skew_ns, seek_track_ns, .. } = drive.parameters;
    let part = |sectors: u64| revolution_ns * sectors / per_track;
    for (runs, expected) in [
        (&[][..], 0),
        (&[(0, per_track)], revolution_ns),
        (&[(10, 8)], part(8)),
        // Two accesses on a track take the shorter rotation from one to the other.
        (&[(10, 8), (30, 8)], part(28)),
        (&[(0, 8), (per_track - 8, 8)], part(16)),
        // Two accesses are on two tracks in a cylinder, or on tracks in two adjacent cylinders.
        (&[(10, 8), (per_track + 10, 8)], 2 * part(8) + head_skew_ns),
        (&[(10, 8), (4 * per_track, 8)], 2 * part(8) + seek_track_ns),
        (&[(per_track - 8, 16)], 2 * part(8) + head_skew_ns),
    ] {
        assert_eq!(drive.sweep_ns(runs.iter().copied()), expected, "{runs:?}");
    }
}

#[test]
fn read_times_lie_within_one_revolution_above_the_seek_curve() {
    for parameters in Parameters::all() {
        let pages = parameters.capacity_bytes / SECTOR_BYTES / PAGE;
        let mut drive = Drive::new(parameters.clone(), parameters.capacity_bytes);
        let (mut random, mut last) = (Random(1), 0);
        let ns = |time: Nanos| time as f64;
        let root_ns = ns(parameters.seek_average_ns - parameters.seek_track_ns) * 15.0 / 8.0;
        // Outer tracks have up to twice as many sectors as inner ones, so the fraction of the
        // stroke is between half and twice the fraction of the drive.
        let curve_ns = |stroke: f64| ns(parameters.seek_track_ns) + root_ns * stroke.sqrt();
        for _ in 0..1500 {
            let (page, arrived_ns) = (random.below(pages), drive.free_ns());
            let request = at(Kind::Read, page * PAGE, PAGE, arrived_ns);
            let service_ns = drive.serve(&request) - arrived_ns;
            let part = page.abs_diff(last) as f64 / pages as f64;
            last = page;
            let least_ns = curve_ns(part / 2.0).min(ns(parameters.seek_full_ns));
            let most_ns = curve_ns((part * 2.0).min(1.0)).min(ns(parameters.seek_full_ns));
            let slack_ns = ns(parameters.revolution_ns + parameters.overhead_ns + MS);
            assert!(ns(service_ns) > least_ns, "{part}: {service_ns}");
            assert!(ns(service_ns) < most_ns + slack_ns, "{part}: {service_ns}");
        }
    }
}
