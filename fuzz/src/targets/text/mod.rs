//! Targets of texts that users and other programs write.

pub(crate) mod checksum_list;
pub(crate) mod config_file;
pub(crate) mod duplicates_pattern;
pub(crate) mod duplicates_report;
pub(crate) mod encryption_attribute;
pub(crate) mod lifecycle_document;
pub(crate) mod option_values;
pub(crate) mod policy_document;
