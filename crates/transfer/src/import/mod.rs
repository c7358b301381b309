//! Finds the files to import, plans their order, and stores them.

mod execute;
mod plan;
mod source;
mod walk;

use std::path::PathBuf;

pub(crate) use execute::is_stored;
pub use execute::{Import, ImportEvents, Imported};
pub use plan::ImportPlan;
pub use source::Source;

impl ImportPlan {
    /// Walks the source and plans the import of its files. A key is `prefix` followed by the
    /// relative path of the file. The directories of the store are left out if they are below the
    /// source.
    #[must_use]
    pub fn new(source: &Source, store: &[PathBuf], prefix: &str) -> Self {
        let walked = walk::walk(source, store);
        let mut plan = plan::plan(walked.entries, prefix);
        plan.refused.extend(walked.refused);
        plan.stores = walked.stores;
        plan
    }
}
