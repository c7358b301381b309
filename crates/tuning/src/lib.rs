//! Predicts when the kernel writes back dirty pages and throttles writers, and recommends settings.
//!
//! # What it is
//! - [`Case`] contains the known facts of a machine: memory, limits, mounts, disks and their write
//!   rates.
//! - [`outlook`] predicts in sentences when the kernel starts writeback, and how long writers
//!   stall.
//! - [`advise`] returns [`Finding`]s with their remedies; [`settings`] returns the setting changes
//!   among the remedies, which are safe at run time.
//! - [`choices`] lists the choices that the storage engines make for a disk, with reasons;
//!   [`warnings`] lists the data that the disk may lose and the properties it may report wrongly.
//! - [`Rates`] and [`Load`] decide whether a measurement is reliable enough to act on.
//!
//! # Promises
//! Every function is pure: it reads no file and changes no setting.
//!
//! # What it is not
//! The crate does not read the kernel's files (`haul_disk::KernelFiles` does), and does not measure
//! disks (`haul_measure::write_rate` does).
//!
//! # Sources
//! - \[PageWriteback\] for the limits of dirty pages.
//! - \[Corbet13\] for limits derived from the rate of the slowest disk.

mod advice;
mod case;
mod choices;
mod durations;
mod finding;
pub mod outlook;
mod rate;
mod reliability;
mod setting;
pub mod text;
mod warnings;

pub use advice::{advise, settings};
pub use case::{Case, Target};
pub use choices::{Choice, choices};
pub use finding::{Finding, Remedy, Weight};
pub use rate::{Rate, RateSource};
pub use reliability::{Load, MEASUREMENTS, Rates};
pub use setting::{Setting, undo_script};
pub use warnings::warnings;
