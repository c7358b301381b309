//! The fuzz targets, and their parts: inputs before they are edited, edits, checksums that are set
//! after edits, servers, and the properties that the targets check.
//!
//! A target gets arbitrary bytes from libFuzzer, which prefers inputs that reach new code. It
//! parses them, sends them to a server, or edits the files of a log or store as they describe. It
//! panics if a promise of the crate under test does not hold, and libFuzzer then stores the input.
//!
//! # Sources
//! Keys refer to `docs/sources.md`: \[Serebryany16\] for fuzzing guided by coverage.

mod chunked;
mod edit;
mod formats;
mod glob;
mod heads;
mod input;
mod proxy;
mod report;
mod servers;
mod targets;

/// A function that checks one input.
pub type Target = fn(&[u8]);

/// The names and functions of all targets, sorted by name.
pub const TARGETS: &[(&str, Target)] = &[
    ("append_log", targets::files::append_log::run),
    ("checksum_list", targets::text::checksum_list::run),
    ("config_file", targets::text::config_file::run),
    ("copy_objects", targets::files::copy_objects::run),
    ("digest_cache", targets::files::digest_cache::run),
    ("duplicates_pattern", targets::text::duplicates_pattern::run),
    ("duplicates_report", targets::text::duplicates_report::run),
    ("encryption_attribute", targets::text::encryption_attribute::run),
    ("file_server", targets::servers::file_server::run),
    ("file_store", targets::files::file_store::run),
    ("http_chunked", targets::http::chunked::run),
    ("http_fields", targets::http::fields::run),
    ("http_request", targets::http::request::run),
    ("http_response", targets::http::response::run),
    ("lifecycle_document", targets::text::lifecycle_document::run),
    ("line_log", targets::files::line_log::run),
    ("option_values", targets::text::option_values::run),
    ("page_file", targets::files::page_file::run),
    ("patch_records", targets::files::patch_records::run),
    ("policy_document", targets::text::policy_document::run),
    ("proxy_header", targets::http::proxy_header::run),
    ("relay_request", targets::servers::relay_request::run),
    ("s3_chunked", targets::servers::s3_chunked::run),
    ("s3_document", targets::servers::s3_document::run),
    ("s3_form", targets::servers::s3_form::run),
    ("s3_request", targets::servers::s3_request::run),
    ("s3_signature", targets::servers::s3_signature::run),
    ("s3_signed_request", targets::servers::s3_signed_request::run),
    ("tar_import", targets::files::tar_import::run),
];

/// Returns the target with this name.
#[must_use]
pub fn find(name: &str) -> Option<Target> {
    TARGETS.iter().find(|target| target.0 == name).map(|target| target.1)
}
