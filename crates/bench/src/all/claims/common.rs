//! Creates claims, and defines the ranges and units that claims of several texts share. Performs no
//! I/O.

use super::super::claim::{Claim, Text};
use super::super::part::Part;

/// The ranges of a ratio of speeds: clearly above 1, several times, clearly below 1, about 1.
const FASTER: (f64, f64) = (1.1, f64::INFINITY);
pub(super) const SEVERAL: (f64, f64) = (2.0, f64::INFINITY);
pub(super) const LESS: (f64, f64) = (0.0, 0.9);
pub(super) const SAME: (f64, f64) = (0.8, 1.25);

const TIMES: &str = "times as fast";
pub(super) const SIMULATED: &str = "times as fast (simulated disk)";
const WRITES: &str = "journal writes a record";

pub(super) const fn claim(text: Text, sentence: &'static str, figure: &'static str) -> Claim {
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

pub(super) const fn journal(sentence: &'static str, figure: &'static str) -> Claim {
    Claim { part: Part::Journal, unit: WRITES, ..claim(Text::Tracing, sentence, figure) }
}

pub(super) const fn read_order(sentence: &'static str, figure: &'static str) -> Claim {
    Claim { part: Part::ReadOrder, unit: SIMULATED, ..claim(Text::SmallFiles, sentence, figure) }
}
