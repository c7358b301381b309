//! Imports tar archives, and exports objects to them.

mod batch;
mod error;
mod export;
mod header;
mod import;
mod path;
mod pax;
mod reader;

pub use error::{TarError, TarExportError};
pub use export::TarExport;
pub use import::{TarImport, TarImported};
