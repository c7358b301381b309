//! Prepares the machine for a comparison of servers: selects two cores, creates a directory, and
//! sets TCP congestion control.

use std::path::Path;

use super::congestion::Congestion;
use super::cores::{Cores, Pinned};
use super::programs::haul_note;
use crate::log::Scratch;
use crate::report::Report;
use haul_measure::{Error, Result, load};

/// The cores for a server and its load, and a directory. On drop, the directory is removed with its
/// contents. Until then, the thread that created this value runs on the core of the load.
pub(crate) struct Environment {
    pub(crate) cores: Cores,
    pub(crate) scratch: Scratch,
    _congestion: Congestion,
    _pinned: Pinned,
}

impl Environment {
    /// Creates a directory in `dir`, sets TCP congestion control, and adds notes to the report.
    ///
    /// # Errors
    /// [`Error::Missing`] if there is only one core, or the congestion control is not available.
    pub(crate) fn new(
        dir: &Path,
        haul: Option<&Path>,
        congestion: Option<&str>,
        report: &mut Report,
    ) -> Result<Self> {
        let cores = Cores::available()?;
        // The path must be absolute, because servers resolve relative paths against their own
        // directory.
        let dir = dir.canonicalize().map_err(Error::other(format!("find {}", dir.display())))?;
        let name = format!("haul-bench-{}.{}", report.bench, std::process::id());
        let scratch = Scratch::new(&dir, &name)?;
        let congestion = Congestion::set(congestion)?;
        report.notes.extend(haul_note(haul));
        report.notes.extend(load());
        report.notes.push(congestion.note.clone());
        let pinned = Pinned::to(cores.load)?;
        Ok(Self { cores, scratch, _congestion: congestion, _pinned: pinned })
    }
}
