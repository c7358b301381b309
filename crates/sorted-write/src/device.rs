//! Determines whether a file's device is rotational, and derives the I/O settings from that.

use std::sync::Arc;

use haul_disk::{DeviceKind, File, KIND_SAMPLES, ReadSample, Storage, measure_kind, sample_places};

use crate::options::Options;
use crate::plan::Costs;

/// The number of requests that a ring can hold.
pub(crate) const RING_DEPTH: u32 = 128;

#[derive(Debug, Clone, Copy)]
pub(crate) struct IoSettings {
    pub(crate) costs: Costs,
    pub(crate) queue_depth: u32,
    pub(crate) window_bytes: u64,
    pub(crate) sync_windows: bool,
}

impl IoSettings {
    /// Returns the settings for a device kind; `None` stands for an unknown kind. A simulated file
    /// gets one request after the other, so that tests are reproducible.
    pub(crate) fn new(options: &Options, kind: Option<DeviceKind>, is_simulated: bool) -> Self {
        let is_rotational = kind == Some(DeviceKind::Rotational);
        let (costs, queue_depth) = match kind {
            Some(DeviceKind::SolidState) => (Costs::SSD, RING_DEPTH),
            Some(DeviceKind::Rotational) => (Costs::HDD, 32),
            None => {
                (Costs { request_us: 0, bytes_per_second: 0 }, if is_simulated { 1 } else { 8 })
            }
        };
        let window_bytes = if is_rotational { 64 << 20 } else { 16 << 20 };
        Self {
            costs: options.costs.unwrap_or(costs),
            queue_depth: options.queue_depth.unwrap_or(queue_depth),
            window_bytes: options.window_bytes.unwrap_or(window_bytes),
            sync_windows: options.sync_windows.unwrap_or(is_rotational),
        }
    }
}

/// Returns the device kind below a file: solid-state if the kernel's `rotational` flag is 0. If the
/// flag is 1, a few direct reads of the file decide, because virtual disks set it wrongly. Returns
/// `None` if the flag is unknown, or if the file has too few written blocks for a measurement.
///
/// A measurement reads two pages of a rotational disk, and one page again.
pub(crate) fn device_kind(storage: Option<&Storage>, file: &Arc<dyn File>) -> Option<DeviceKind> {
    if !storage?.queue.rotational? {
        return Some(DeviceKind::SolidState);
    }
    let descriptor = file.descriptor()?;
    let places = sample_places([file.bytes().ok()?].into_iter(), KIND_SAMPLES);
    let sample = |(_, offset)| ReadSample::new(descriptor.try_clone_to_owned().ok()?, offset);
    let samples = places.into_iter().filter_map(sample).collect();
    measure_kind(samples).map(|(kind, _)| kind)
}
