//! Holds the state that the threads of a run share. A run is one call of `read`. It reads the
//! requests of each device in one or two passes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use haul_disk::DeviceKind;

use super::consumer::Consumer;
use super::defer::Deferral;
use super::device::{Device, DeviceStats};
use super::options::ReadOptions;
use super::request::ReadRequest;
use super::window::DEPTH_ROTATIONAL;
use crate::tree::Tree;

/// The default queue depth per thread on a solid-state device.
const DEPTH_SOLID_STATE: usize = 32;

/// Statistics of a run of reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadStats {
    /// The number of successful requests.
    pub requests: u64,
    /// The number of failed requests.
    pub failed: u64,
    /// The number of bytes read.
    pub bytes: u64,
    /// The statistics of each device.
    pub devices: Vec<DeviceStats>,
}

/// The counters of a worker since its last report.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Count {
    pub(super) requests: u64,
    pub(super) failed: u64,
    pub(super) bytes: u64,
    pub(super) cold: u64,
}

/// The state shared by all threads of a run.
pub(super) struct Run<'a, C> {
    pub(super) tree: &'a Tree,
    pub(super) requests: &'a [ReadRequest],
    pub(super) options: &'a ReadOptions<'a>,
    pub(super) consumer: &'a C,
    requests_done: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
}

/// The parameters of a pass over requests of one device.
#[derive(Debug)]
pub(super) struct Pass {
    pub(super) depth: usize,
    pub(super) memory_bytes: usize,
    /// `true` to submit the reads of one file completely before the next file is started.
    pub(super) in_sweep: bool,
    /// `true` if all requests were found to be uncached.
    pub(super) is_cold: bool,
    pub(super) in_memory: bool,
    pub(super) no_length: bool,
    pub(super) deferral: Option<Deferral>,
    cold: AtomicU64,
}

impl<'a, C: Consumer> Run<'a, C> {
    pub(super) fn new(
        tree: &'a Tree,
        requests: &'a [ReadRequest],
        options: &'a ReadOptions<'a>,
        consumer: &'a C,
    ) -> Self {
        Self {
            tree,
            requests,
            options,
            consumer,
            requests_done: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// `true` if the caller cancelled the run.
    pub(super) fn is_stopped(&self) -> bool {
        self.options.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Adds the counters of a worker to the totals and reports progress to the consumer.
    pub(super) fn add_counts(&self, count: Count, pass: &Pass) {
        let requests =
            self.requests_done.fetch_add(count.requests, Ordering::Relaxed) + count.requests;
        let failed = self.failed.fetch_add(count.failed, Ordering::Relaxed) + count.failed;
        let bytes = self.bytes.fetch_add(count.bytes, Ordering::Relaxed) + count.bytes;
        pass.cold.fetch_add(count.cold, Ordering::Relaxed);
        self.consumer.progress(requests + failed, bytes);
    }

    /// Returns the number of threads for a device that is not rotational.
    pub(super) fn threads(&self) -> usize {
        let cores = || thread::available_parallelism().map_or(1, usize::from);
        self.options.threads.unwrap_or_else(cores).max(1)
    }

    /// Returns the number of threads for a device of the given kind.
    pub(super) fn threads_on(&self, kind: DeviceKind) -> usize {
        match kind {
            DeviceKind::SolidState => self.threads(),
            // A second thread would only make the head seek between two places.
            DeviceKind::Rotational => self.options.threads.unwrap_or(1).max(1),
        }
    }

    /// Returns the statistics of the completed run.
    pub(super) fn into_stats(self, devices: Vec<DeviceStats>) -> ReadStats {
        ReadStats {
            requests: self.requests_done.into_inner(),
            failed: self.failed.into_inner(),
            bytes: self.bytes.into_inner(),
            devices,
        }
    }
}

impl Pass {
    /// Creates a pass over requests of a device, with the parameters for the given kind.
    pub(super) fn new(
        options: &ReadOptions<'_>,
        device: &Device,
        kind: DeviceKind,
        memory_bytes: usize,
    ) -> Self {
        Self {
            depth: options.depth.unwrap_or(match kind {
                DeviceKind::SolidState => DEPTH_SOLID_STATE,
                DeviceKind::Rotational => DEPTH_ROTATIONAL,
            }),
            memory_bytes,
            in_sweep: kind == DeviceKind::Rotational,
            is_cold: false,
            in_memory: device.in_memory,
            no_length: device.no_length,
            deferral: None,
            cold: AtomicU64::new(0),
        }
    }

    /// Makes the pass defer the requests that are not cached.
    pub(super) fn deferring(self, deferral: Deferral) -> Self {
        Self { deferral: Some(deferral), ..self }
    }

    /// Makes the pass treat all requests as uncached.
    pub(super) fn over_uncached(self) -> Self {
        Self { is_cold: true, ..self }
    }

    /// Returns the number of requests that were not fully cached.
    pub(super) fn cold(&self) -> u64 {
        self.cold.load(Ordering::Relaxed)
    }
}
