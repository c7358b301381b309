//! The claims of the text on many small files. Performs no I/O.

use super::super::claim::Claim;
use super::common::{SEVERAL, read_order};

pub(super) const CLAIMS: &[Claim] = &[
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
