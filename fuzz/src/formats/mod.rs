//! Logs, stores, archives and copies that targets edit.

pub(crate) mod archive;
pub(crate) mod copy;
pub(crate) mod line_log;
pub(crate) mod log;
pub(crate) mod page_file;
pub(crate) mod segment;
pub(crate) mod store;
pub(crate) mod store_files;
