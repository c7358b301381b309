//! Tests of the `haul` program.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests, which may panic and print like tests"
)]

mod archives;
mod cache;
mod cache_order;
mod damage;
mod disks;
mod doctor;
mod dups;
mod dups_filters;
mod dups_scripts;
mod events;
mod exit_codes;
mod fclones;
mod files;
mod generated;
mod handover;
mod helper;
mod import_s3;
mod json;
mod keys;
mod lifecycle;
mod log;
mod mistakes;
mod objects;
mod patch;
mod pictures;
mod probe;
mod progress;
mod quotas;
mod relay;
mod replication;
mod s3_model;
mod serving;
mod soak;
mod sum;
mod tls;
mod trees;
mod tune;
mod tune_persist;
mod versions;
mod wal;
