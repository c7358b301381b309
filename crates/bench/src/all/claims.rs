//! Lists the claims of the five texts that a benchmark can show. Performs no I/O.

use super::claim::{Claim, Text};
use super::part::Part;

/// The ranges of a ratio of speeds: clearly above 1, several times, clearly below 1, about 1.
const FASTER: (f64, f64) = (1.1, f64::INFINITY);
const SEVERAL: (f64, f64) = (2.0, f64::INFINITY);
const LESS: (f64, f64) = (0.0, 0.9);
const SAME: (f64, f64) = (0.8, 1.25);

const TIMES: &str = "times as fast";
const SIMULATED: &str = "times as fast (simulated disk)";
const WRITES: &str = "journal writes a record";

const fn claim(text: Text, sentence: &'static str, figure: &'static str) -> Claim {
    Claim {
        text,
        sentence,
        label: "",
        figure,
        figure_value: None,
        part: Part::WriteModes,
        ratio: "",
        unit: TIMES,
        holds: FASTER,
        if_yes: "",
        if_no: "",
    }
}

const fn journal(sentence: &'static str, figure: &'static str) -> Claim {
    Claim { part: Part::Journal, unit: WRITES, ..claim(Text::Tracing, sentence, figure) }
}

const fn read_order(sentence: &'static str, figure: &'static str) -> Claim {
    Claim { part: Part::ReadOrder, unit: SIMULATED, ..claim(Text::SmallFiles, sentence, figure) }
}

/// All claims, in the order of the texts.
pub(crate) const CLAIMS: &[Claim] = &[
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
        part: Part::DirectOrCached,
        ratio: "crossover",
        label: "crossover of direct and cached",
        unit: "times the memory",
        holds: (3.0, 12.0),
        if_yes: "Above this ratio of data to memory, bypass the page cache for random reads.",
        if_no: "The page cache stops paying off at another ratio of data to memory than in the \
                text.",
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
        ratio: "inode_vs_unsorted",
        label: "inode order against unsorted (sim.)",
        figure_value: Some(7.75),
        holds: SEVERAL,
        if_yes: "Without extents, read files in the order of their inodes.",
        if_no: "The inode order gains little in an aged tree: new files take the places of old \
                ones.",
        ..read_order(
            "On a spinning disk, reading small files by inode number is several times faster.",
            "7.75 times as fast (217 s against 28 s)",
        )
    },
    Claim {
        ratio: "physical_vs_unsorted",
        label: "physical order against unsorted (sim.)",
        figure_value: Some(11.4),
        if_yes: "Read files in the order of their first extents (FIEMAP), as haul dups does.",
        if_no: "The physical order gains nothing in this tree.",
        ..read_order(
            "On a spinning disk, reading small files by physical position is the fastest order.",
            "11.4 times as fast (217 s against 19 s)",
        )
    },
    Claim {
        ratio: "physical_vs_inode",
        label: "physical against inode order (sim.)",
        figure_value: Some(1.47),
        if_yes: "Querying the extents of each file is worth its cost.",
        if_no: "The inode order is as good as the physical one.",
        ..read_order(
            "On a spinning disk, the physical order is faster than the inode order.",
            "1.47 times as fast (28 s against 19 s)",
        )
    },
    Claim {
        ratio: "physical_1_vs_4_threads",
        label: "one reader against four (sim.)",
        if_yes: "Read a spinning disk with one thread.",
        if_no: "Several readers in physical order do not harm: the drive sorts their requests.",
        ..read_order("On a spinning disk, one reader is faster than several.", "no figure")
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_claim_is_complete_and_has_a_ratio_of_its_own() {
        let ratios: BTreeSet<_> = CLAIMS.iter().map(|it| (it.part.name(), it.ratio)).collect();
        assert_eq!(ratios.len(), CLAIMS.len());
        for text in Text::ALL {
            assert!(CLAIMS.iter().any(|claim| claim.text == text), "{}", text.title());
        }
        for claim in CLAIMS {
            let texts =
                [claim.sentence, claim.label, claim.figure, claim.ratio, claim.if_yes, claim.if_no];
            assert!(texts.iter().all(|text| !text.is_empty()), "{}", claim.sentence);
            assert!(claim.sentence.ends_with('.') && claim.holds.0 < claim.holds.1);
        }
    }
}
