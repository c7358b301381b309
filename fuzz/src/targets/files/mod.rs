//! Targets of formats on disk and in object stores.

pub(crate) mod append_log;
pub(crate) mod copy_objects;
pub(crate) mod digest_cache;
pub(crate) mod file_store;
pub(crate) mod line_log;
pub(crate) mod page_file;
pub(crate) mod patch_records;
pub(crate) mod tar_import;
