//! A spinning disk, simulated.
//!
//! # What it is
//! [`Drive`] is told requests with the times they arrive, and answers when each is done: with a
//! seek curve, a platter that turns, zones, a read-ahead cache, a write cache and a queue of which
//! the nearest is served first. It has no clock, so the same requests always take the same time.
//!
//! # Example
//! ```
//! use haul_disk_sim::{Drive, Kind, MS, Parameters, Request};
//!
//! let mut drive = Drive::new(Parameters::travelstar_7k320(), 1 << 30);
//! let read = |sector, arrived_ns| Request { kind: Kind::Read, sector, sectors: 8, arrived_ns };
//! let there = drive.serve(&read(1_000_000, 0));
//! let next_to_it = drive.serve(&read(1_000_008, there)) - there;
//! assert!(there > 2 * MS && next_to_it < MS / 2);
//! assert_eq!(drive.counters().seeks, 1);
//! ```
//!
//! # Promises
//! Times never run backwards; the parts of the time add up to it; a request is never put off
//! longer than the drive's patience, and nothing overtakes a sync.
//!
//! # Cost
//! A microsecond or so a request, and for each choice as much for each request that waits.
//!
//! # What it is not
//! A certain drive: the published numbers are kept, the rest is assumed and said so.
//!
//! # Sources
//! \[Ruemmler94\], \[Jacobson91\], \[Travelstar7K320\], \[Deskstar7K1000\] in `docs/sources.md`.

mod arm;
mod counters;
mod disk;
mod guard;
mod medium;
mod model;
mod plot;
mod random;
mod served;

pub use counters::{Counters, Parts};
pub use disk::{Backing, Mounted, Options, SpinningDisk};
pub use model::{Drive, Kind, MS, Nanos, Parameters, Request, SECTOR_BYTES};
pub use plot::plot;
