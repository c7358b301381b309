//! Groups the requests of a run by device, and defines the statistics of a device.

mod group;
mod stats;

pub(super) use group::{Device, Group, groups};
pub use stats::DeviceStats;
