//! The claims of the text on the page cache, direct I/O and splice. Performs no I/O.

use super::super::claim::{Claim, Text};
use super::super::part::Part;
use super::common::{LESS, claim};

pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        part: Part::AppCache,
        ratio: "scan_direct_p99_vs_page_cache",
        label: "p99 beside a direct scan",
        unit: "times the p99 latency",
        holds: LESS,
        if_yes: "Read huge files with O_DIRECT: hot files stay in the page cache.",
        if_no: "Direct scans do not protect the hot pages here.",
        ..claim(
            Text::PageCache,
            "A scan of cold data evicts hot pages; a scan with O_DIRECT does not.",
            "no figure",
        )
    },
    Claim {
        part: Part::DirectOrCached,
        ratio: "direct_vs_cached_50_percent",
        label: "direct against cached, data fits",
        holds: LESS,
        if_yes: "While the data fits into memory, read through the page cache.",
        if_no: "Direct reads are as fast as the page cache even for data that fits into memory.",
        ..claim(
            Text::PageCache,
            "While the data fits into memory, direct reads are slower than reads through the page \
             cache.",
            "no figure",
        )
    },
    Claim {
        part: Part::Splice,
        ratio: "reused_vs_copies_1k_1048576",
        label: "splice against copies of 1 KiB, 1 MiB",
        figure_value: Some(1.5),
        if_yes: "Relay long bodies by splice, or by copies through a buffer of 64 KiB.",
        if_no: "System calls cost so little here that short copies are as fast as splice.",
        ..claim(
            Text::PageCache,
            "Relaying a body of 1 MiB by splice is faster than copies through a buffer of 1 KiB.",
            "1.5 times as fast",
        )
    },
    Claim {
        part: Part::Splice,
        ratio: "reused_vs_own_pipe_1024",
        label: "reused pipe against a pipe per call",
        if_yes: "Keep the pipes of splice, and lease them to the next connection.",
        if_no: "Creating a pipe for each call costs hardly anything here.",
        ..claim(
            Text::PageCache,
            "Creating a pipe for each call of splice is waste: a pipe that is reused is faster.",
            "no figure",
        )
    },
];
