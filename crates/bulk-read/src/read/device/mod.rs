//! The devices of a run: the requests of each device, and its kind.

mod group;
mod kind;
mod measure;

pub(super) use group::{Device, Group, groups};
pub(super) use kind::{CONCURRENT_READS, SINGLE_READS, samples};
pub use kind::{DeviceKind, DeviceStats, KindSource};
pub(super) use measure::measure;
