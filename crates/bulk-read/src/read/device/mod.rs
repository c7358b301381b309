//! Groups the requests of a run by device, detects the kind of a device, and defines its
//! statistics.

mod detect;
mod group;
mod stats;

pub use detect::device_kind;
pub(super) use detect::{known_kind, measure};
pub(super) use group::{Device, Group, groups};
pub use stats::DeviceStats;
