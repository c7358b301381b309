//! The program `haul-bench`, with everything as small as possible: that benchmarks run, report and
//! clean up, not what they find.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which may fail like them")]

mod log;
mod net;
mod pacing;
mod read;
mod work_dir;
mod write;
mod write_modes;
