//! Predicts when the kernel writes back dirty pages and throttles writers, and recommends settings.
//!
//! # What it is
//! - [`Case`] contains the known facts of a machine: its memory, its limits of dirty memory, its
//!   mounts, and the write rates of its disks.
//! - [`outlook`] predicts in sentences when the kernel starts writeback, and how long an fsync may
//!   wait.
//! - [`advise`] returns [`Finding`]s: risks and avoidable delays, with remedies. [`settings`]
//!   returns those remedies that change a kernel setting and are safe at run time.
//! - [`checks`] compares the [`Facts`] of a machine with the needs of Haul's programs.
//! - [`choices`] lists the methods by which Haul reads, writes and syncs on a disk, with reasons.
//! - [`warnings`] lists data that the disk may lose, and properties that it may report wrongly.
//! - [`Rates`] and [`Load`] decide whether a measured write rate is reliable enough to change
//!   settings.
//! - [`persisted_text`] and [`parse_persisted`] format and parse the files that make settings
//!   persistent.
//!
//! # Promises
//! Every function is pure: it reads no file and changes no setting.
//!
//! # What it is not
//! The crate does not read the kernel's files (`haul_disk::KernelFiles` does), and does not measure
//! disks (`haul_measure::write_rate` does).
//!
//! # Sources
//! - \[PageWriteback\] (see `docs/sources.md`) for the limits of dirty pages.
//! - \[Corbet13\] for limits derived from the rate of the slowest disk.

mod advice;
mod case;
mod checks;
mod choices;
mod durations;
mod finding;
pub mod outlook;
mod persisted;
mod rate;
mod reliability;
mod setting;
pub mod text;
mod warnings;

pub use advice::{advise, settings};
pub use case::{Case, Target};
pub use checks::{Check, Facts, Status, checks};
pub use choices::{Choice, choices};
pub use finding::{Finding, Remedy, Severity};
pub use persisted::{
    PersistedSetting, SYSCTL_FILE, UDEV_FILE, merge_persisted, parse_persisted, persisted_text,
};
pub use rate::{Rate, RateSource};
pub use reliability::{Load, MEASUREMENTS, Rates, objection_to_targets};
pub use setting::{Setting, undo_script};
pub use warnings::warnings;
