//! The claims of the text on fast durable writes. Performs no I/O.

use super::super::claim::{Claim, Text};
use super::super::part::Part;
use super::common::{SAME, SEVERAL, claim};

pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        ratio: "filled_vs_append_fsync_4k",
        label: "filled file against append, fsync",
        figure_value: Some(4.2),
        holds: SEVERAL,
        if_yes: "Fill a log file before its use, or reuse an old one: appends then cost one write \
                 and one sync of the write cache.",
        if_no: "Filling a file in advance gains little here, as on file systems that never write \
                in place.",
        ..claim(
            Text::Writing,
            "Durable writes into a file that was filled before are several times faster than \
             appends.",
            "4.2 times as fast (16.92 s against 4.03 s)",
        )
    },
    Claim {
        ratio: "fallocate_vs_append_fsync_4k",
        label: "fallocate against append, fsync",
        figure_value: Some(1.26),
        if_yes: "Allocating blocks in advance helps, but less than filling them.",
        if_no: "Allocated blocks are still unwritten: the first write to each one changes \
                metadata, \
                as an append does.",
        ..claim(
            Text::Writing,
            "Allocating the blocks with fallocate makes durable writes faster than appends.",
            "1.26 times as fast (16.92 s against 13.47 s)",
        )
    },
    Claim {
        ratio: "pass_2_vs_1_zero_range_fsync_4k",
        label: "second pass against first, fsync",
        figure_value: Some(1.78),
        if_yes: "The first pass converts unwritten extents; only the second one runs at full \
                 speed.",
        if_no: "The first pass over zeroed blocks costs no more than the second one here.",
        ..claim(
            Text::Writing,
            "The second pass over a file is faster than the first one, with fsync.",
            "1.78 times as fast (15.56 s against 8.76 s)",
        )
    },
    Claim {
        ratio: "pass_2_vs_1_zero_range_fdatasync_4k",
        label: "second pass against first, fdatasync",
        figure_value: Some(1.79),
        if_yes: "fdatasync pays for the conversion of unwritten extents, too.",
        if_no: "The first pass with fdatasync costs no more than the second one here.",
        ..claim(
            Text::Writing,
            "The second pass over a file is faster than the first one, with fdatasync.",
            "1.79 times as fast (15.07 s against 8.42 s)",
        )
    },
    Claim {
        ratio: "unsynced_vs_fsync_filled_4k",
        label: "no sync against fsync",
        figure_value: Some(12.0),
        holds: (10.0, f64::INFINITY),
        if_yes: "Durability is what a write costs: share one sync among many records.",
        if_no: "A sync costs little here: check whether the device really makes data durable.",
        ..claim(
            Text::Writing,
            "Writes without a sync are an order of magnitude faster than writes with fsync.",
            "12 times as fast (15.56 s against 1.30 s)",
        )
    },
    Claim {
        ratio: "fdatasync_vs_fsync_filled_4k",
        label: "fdatasync against fsync",
        figure_value: Some(2.0),
        holds: (1.5, f64::INFINITY),
        if_yes: "Use fdatasync: fsync also waits for the timestamps of the file.",
        if_no: "fsync costs hardly more than fdatasync in a file that does not grow: the \
                timestamps \
                rarely change between two records.",
        ..claim(
            Text::Writing,
            "fsync costs two writes, fdatasync only one.",
            "2 writes against 1; 1.03 times as fast in the text's own test",
        )
    },
    Claim {
        ratio: "filled_vs_zero_range_fdatasync_4k",
        label: "filled file against ZERO_RANGE",
        figure_value: Some(1.0),
        holds: SAME,
        if_yes: "FALLOC_FL_ZERO_RANGE replaces filling the file here.",
        if_no: "FALLOC_FL_ZERO_RANGE only marks extents as unwritten: write zeros instead.",
        ..claim(
            Text::Writing,
            "FALLOC_FL_ZERO_RANGE fills a file as well as writing it does.",
            "the same speed",
        )
    },
    Claim {
        part: Part::SequentialRead,
        ratio: "mmap_advised_vs_mmap",
        label: "mmap with advice against without",
        if_yes: "Advise the kernel on the part of a mapping that is read next.",
        if_no: "The readahead of page faults suffices: advice for a mapping gains nothing.",
        ..claim(
            Text::Writing,
            "Reading ahead of the reader makes a memory mapping faster.",
            "no figure",
        )
    },
    Claim {
        part: Part::JournalCost,
        ratio: "nojournal_vs_journal_zero_range_fsync",
        label: "no journal against journal, fsync",
        figure_value: Some(1.0),
        holds: SAME,
        if_yes: "The journal of ext4 costs nothing here: the device makes writes and cache syncs \
                 cheap.",
        if_no: "The journal of ext4 costs one more write and one more sync of the write cache for \
                each record in new blocks. Overwrite old blocks instead of removing the journal.",
        ..claim(
            Text::Writing,
            "Durable writes to ext4 take the same time with a journal and without it.",
            "the same time (15.56 s against 15.63 s)",
        )
    },
];
