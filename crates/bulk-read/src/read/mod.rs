//! Reads many files or ranges of files in one run. Requests are grouped by device and sorted in the
//! order that suits the device. A few threads read them and pass the bytes to the consumer.

mod buffers;
mod cold;
mod consumer;
mod defer;
mod device;
mod engine;
mod open;
mod options;
mod passes;
mod plan;
mod request;
mod run;
mod sparse;
mod stream;
mod window;
mod worker;

pub use consumer::Consumer;
pub use device::{DeviceStats, device_kind};
pub use haul_disk::{DeviceKind, KindSource};
pub use options::{CacheMode, ReadOptions};
pub use passes::read;
pub use plan::Order;
pub use request::{FileStatus, ReadRequest, ReadSummary};
pub use run::ReadStats;
