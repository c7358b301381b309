//! Where servers and their load are measured.

use std::path::Path;

use super::cores::Cores;
use crate::error::{Error, Result};
use crate::log::Scratch;

/// A core for each, and a directory of their own, which goes away with all that is in it.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) cores: Cores,
    pub(crate) scratch: Scratch,
}

impl Place {
    /// A directory in `dir`, named after the bench.
    ///
    /// # Errors
    /// [`Error::Missing`] where there is only one core; when the directory cannot be made.
    pub(crate) fn new(dir: &Path, bench: &str) -> Result<Self> {
        let cores = Cores::here()?;
        // Servers take what is relative for relative to where they are.
        let dir = dir.canonicalize().map_err(Error::other(format!("find {}", dir.display())))?;
        let name = format!("haul-bench-{bench}.{}", std::process::id());
        Ok(Self { cores, scratch: Scratch::new(&dir, &name)? })
    }
}
