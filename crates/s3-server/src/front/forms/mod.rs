//! Uploads with HTML forms (POST with `multipart/form-data`).
//!
//! `receive` reads the fields before the file, which `fields` parses, and leaves the file's content
//! to `file`, a body that ends before the delimiter. `policy` and `signature` decide whether the
//! form may be used, and `upload` turns it into a PUT and translates the response. An uploaded file
//! thus passes the same checks as a PUT object, and is never completely in memory.
//!
//! Source: AWS, "Browser-Based Uploads Using POST" in the S3 API reference; RFC 7578.

mod fields;
mod file;
mod policy;
mod receive;
mod signature;
pub(crate) mod upload;
