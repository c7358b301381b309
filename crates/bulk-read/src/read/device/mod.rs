//! Groups the requests of a run by device, and determines the kind of each device.

mod group;
mod kind;
mod measure;
mod timer;

pub(super) use group::{Device, Group, groups};
pub(super) use kind::{CONCURRENT_READS, SINGLE_READS, samples};
pub use kind::{DeviceKind, DeviceStats, KindSource};
pub(super) use measure::measure;
