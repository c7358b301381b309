//! The claims of the text on durable writes in the block trace. Performs no I/O.

use super::super::claim::{Claim, Text};
use super::common::{claim, journal};

pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        ratio: "journal_writes_per_record_append_4k",
        label: "journal writes of an append",
        holds: (1.5, 2.5),
        if_yes: "On ext4 with a journal, each durable append also writes the journal and its \
                 commit \
                 block, and syncs the write cache twice.",
        if_no: "This ext4 journals appends differently from the text.",
        ..journal(
            "On ext4, each durable append causes two writes of the journal.",
            "2 journal writes a record (16 KiB and a commit block of 4 KiB)",
        )
    },
    Claim {
        ratio: "journal_writes_per_record_recycled_4k",
        label: "journal writes of an overwrite",
        holds: (0.0, 0.1),
        if_yes: "Overwriting blocks that were written before needs no journal.",
        if_no: "Other changes of the file system reach the journal during the records.",
        ..journal(
            "On ext4, overwriting a file that was written before causes no journal writes.",
            "0 journal writes a record",
        )
    },
    Claim {
        ratio: "journal_writes_per_record_fallocate_512",
        label: "journal writes of 512 B",
        holds: (0.2, 0.35),
        if_yes: "With short records, only the first record of each block of an allocated file pays \
                 for the journal.",
        if_no: "The journal is written more or less often than once a block.",
        ..journal(
            "On ext4, records of 512 B in an allocated file write the journal once for 8 records.",
            "0.25 journal writes a record (two for 8 records)",
        )
    },
    Claim {
        ratio: "recycled_vs_append_fdatasync_4k",
        label: "reused file against append",
        figure_value: Some(4.0),
        if_yes: "Rename an old log file and overwrite it, as append-log does.",
        if_no: "Reusing a file gains nothing here.",
        ..claim(
            Text::Tracing,
            "Reusing an old file by renaming it makes durable writes faster than appends.",
            "about 4 times as fast",
        )
    },
];
