//! The choices that are left to the owner.

use haul_disk::Storage;

use crate::error::{Error, Result};
use crate::plan::Costs;

/// The longest write that is kept in one piece.
pub const WRITE_BYTES_MAX: usize = 1 << 20;

/// What a file is to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// Written in each round.
    #[default]
    Bulk,
    /// Small, and changed again and again, such as an index: kept in memory of its own and written
    /// behind the bulk, in every [`Options::index_every`]-th round and at barriers.
    Index,
}

/// How writes are gathered and carried out.
#[derive(Debug, Clone)]
pub struct Options {
    /// Memory of each of the two generations of bulk files. 64 MiB. The larger, the shorter the
    /// way from one write to the next.
    pub generation_bytes: usize,
    /// Memory of each of the two generations of index files. 16 MiB.
    pub index_bytes: usize,
    /// In which rounds index files are written: in every round, every second, ... 4.
    pub index_every: u32,
    /// How many bytes are written to a file before it is synced, asked for or not: long before the
    /// kernel makes writers wait for its own limits. 256 MiB.
    pub sync_bytes: u64,
    /// Memory for requests under way: so much is read, then written. `None` takes 16 MiB, and 64 MiB
    /// on a device that spins, where the head goes back after each.
    pub window_bytes: Option<u64>,
    /// The longest request. 1 MiB.
    pub request_bytes_max: u64,
    /// What a request costs; `None` takes [`Costs::SOLID`] where the kernel calls the device
    /// solid, [`Costs::SPINNING`] where it says it spins, and counts nothing as cheap where it
    /// does not say.
    pub costs: Option<Costs>,
    /// Plans and counts everything, and writes nothing: to see what it would come to.
    pub is_rehearsal: bool,
    /// How many requests are under way at once; `None` takes 8 on a solid device, 4 on one that
    /// spins, which takes the nearest of neighbours, else 1.
    pub lanes: Option<u32>,
    /// Whether a window is synced before the next one is read. Otherwise a drive with a write cache
    /// puts the writes off until its head is busy reading elsewhere, and goes to and fro. `None`
    /// does so on a device that spins.
    pub sync_windows: Option<bool>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            generation_bytes: 64 << 20,
            index_bytes: 16 << 20,
            index_every: 4,
            sync_bytes: 256 << 20,
            window_bytes: None,
            request_bytes_max: 1 << 20,
            costs: None,
            is_rehearsal: false,
            lanes: None,
            sync_windows: None,
        }
    }
}

impl Options {
    pub(crate) fn check(&self) -> Result<()> {
        if self.generation_bytes == 0 || self.index_bytes == 0 || self.index_every == 0 {
            return Err(Error::Invalid(
                "generation_bytes, index_bytes and index_every must be greater than 0",
            ));
        }
        let requests = 4096..=1 << 30;
        if !requests.contains(&self.request_bytes_max) || !self.request_bytes_max.is_power_of_two()
        {
            return Err(Error::Invalid(
                "request_bytes_max must be a power of two between 4 KiB and 1 GiB",
            ));
        }
        if self.lanes == Some(0) || self.sync_bytes == 0 || self.window_bytes == Some(0) {
            return Err(Error::Invalid(
                "lanes, sync_bytes and window_bytes must be greater than 0",
            ));
        }
        Ok(())
    }

    /// What is done on this storage.
    pub(crate) fn ways(&self, storage: Option<&Storage>) -> Ways {
        let spins = storage.and_then(|storage| storage.queue.rotational);
        let (costs, lanes) = match spins {
            Some(false) => (Costs::SOLID, 8),
            Some(true) => (Costs::SPINNING, 4),
            None => (Costs { request_us: 0, bytes_per_second: 0 }, 1),
        };
        let window_bytes = if spins == Some(true) { 64 << 20 } else { 16 << 20 };
        Ways {
            costs: self.costs.unwrap_or(costs),
            lanes: self.lanes.unwrap_or(lanes),
            window_bytes: self.window_bytes.unwrap_or(window_bytes),
            sync_windows: self.sync_windows.unwrap_or(spins == Some(true)),
        }
    }
}

/// How a file is written on its storage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ways {
    pub(crate) costs: Costs,
    pub(crate) lanes: u32,
    pub(crate) window_bytes: u64,
    pub(crate) sync_windows: bool,
}
