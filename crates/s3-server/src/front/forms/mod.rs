//! Uploads by HTML forms (POST with `multipart/form-data`).
//!
//! `receive` reads the fields that precede the file, which `fields` parses, and leaves the content
//! of the file to `file`, a body that ends before the delimiter. `policy` and `signature` decide
//! whether the form may be used, and `upload` makes it a PUT and translates the answer. So an
//! uploaded file passes the same checks as an object of a PUT, and is never in memory as a whole.
//!
//! Source: AWS, "Browser-Based Uploads Using POST" of the S3 API reference; RFC 7578.

mod fields;
mod file;
mod policy;
mod receive;
mod signature;
pub(crate) mod upload;
