//! Runs the program `haul-bench` with small loads, and checks that each benchmark runs, writes a
//! report and cleans up. The measured figures are not checked.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which may fail like them")]

mod all;
mod compare;
mod log;
mod net;
mod read;
mod small_files;
mod work_dir;
mod write;
mod write_modes;
