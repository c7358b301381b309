//! The claims of the text on random access, threads and writeback. Performs no I/O.

use super::super::claim::{Claim, Text};
use super::super::part::Part;
use super::common::{LESS, SAME, SEVERAL, SIMULATED, claim};

pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        part: Part::DirectOrCached,
        ratio: "direct_vs_cached_600_percent",
        label: "direct against cached, 6 times the memory",
        if_yes: "Bypass the page cache for random reads of data of this size.",
        if_no: "With so much data, the page cache still costs nothing; bypass it to keep the pages \
                of other programs.",
        ..claim(
            Text::RandomAccess,
            "Direct random reads are faster than cached ones if the data is about six times the \
             memory.",
            "6 times the memory (50 GB with 8 GB)",
        )
    },
    Claim {
        part: Part::RandomWrite,
        ratio: "spinning_sorted_vs_random",
        label: "sorted against random writes (sim.)",
        figure_value: Some(5.0),
        holds: SEVERAL,
        unit: SIMULATED,
        if_yes: "On a spinning disk, gather random writes in memory and sort them by offset.",
        if_no: "Sorting gains little with batches of this length.",
        ..claim(
            Text::RandomAccess,
            "On a spinning disk, random writes sorted in memory are several times faster.",
            "5 times as fast (over 2 h against 1,645 s)",
        )
    },
    Claim {
        part: Part::RandomWrite,
        ratio: "spinning_apart_vs_mixed_cached",
        label: "index apart against mixed (sim.)",
        unit: SIMULATED,
        if_yes: "On a spinning disk, write the index in rounds of its own, not between the \
                 records.",
        if_no: "The page cache already gathers the writes of the index.",
        ..claim(
            Text::RandomAccess,
            "On a spinning disk, writes of an index between the records take more than the sum of \
             both alone.",
            "more than the sum of the parts",
        )
    },
    Claim {
        part: Part::RandomRead,
        ratio: "shared_64_vs_1_cold",
        label: "64 readers against 1",
        figure_value: Some(10.0),
        holds: (10.0, f64::INFINITY),
        if_yes: "Keep many reads in flight: one reader at a time leaves this disk idle.",
        if_no: "More readers raise the rate of this disk by less: see the knee of its curve.",
        ..claim(
            Text::RandomAccess,
            "Many threads raise the rate of random reads by at least ten times.",
            "10 times as fast or more",
        )
    },
    Claim {
        part: Part::RandomRead,
        ratio: "shared_vs_locked_64_cold",
        label: "pread against seek + lock",
        if_yes: "Use pread: a seek and a read need a lock around both.",
        if_no: "The lock around seek and read is not the bottleneck here.",
        ..claim(
            Text::RandomAccess,
            "pread by many threads is faster than seek and read under a lock.",
            "no figure",
        )
    },
    Claim {
        part: Part::RandomRead,
        ratio: "own_vs_shared_64_cold",
        label: "own against shared descriptors",
        figure_value: Some(1.0),
        holds: SAME,
        if_yes: "All threads may share one descriptor.",
        if_no: "Own descriptors make a difference here.",
        ..claim(
            Text::RandomAccess,
            "A descriptor for each thread gains nothing over one shared descriptor.",
            "the same speed",
        )
    },
    Claim {
        part: Part::AppCache,
        ratio: "app_cache_p99_vs_page_cache",
        label: "p99 with an application cache",
        unit: "times the p99 latency",
        holds: LESS,
        if_yes: "Keep what must stay fast in a cache of the application: other programs evict the \
                 page cache.",
        if_no: "A cache of the application does not lower the latency here.",
        ..claim(
            Text::RandomAccess,
            "A cache of the application keeps hot data in memory while others fill the page cache.",
            "no figure",
        )
    },
    Claim {
        part: Part::Pacing,
        ratio: "paced_p999_vs_unpaced",
        label: "p99.9 beside paced bulk writes",
        unit: "times the p99.9 latency",
        holds: LESS,
        if_yes: "Start writeback every few MiB during bulk writes, and small syncs stay fast.",
        if_no: "Pacing does not lower the latency of small syncs here.",
        ..claim(
            Text::RandomAccess,
            "Bulk writes that sync at the right moments do not stall other writers.",
            "stalls of up to 5 minutes without",
        )
    },
    Claim {
        part: Part::SequentialRead,
        ratio: "readahead_vs_none",
        label: "readahead against none",
        if_yes: "Leave the readahead on for sequential reads.",
        if_no: "Readahead gains nothing with reads of this length.",
        ..claim(
            Text::RandomAccess,
            "The readahead of the kernel makes sequential reads faster.",
            "no figure",
        )
    },
];
