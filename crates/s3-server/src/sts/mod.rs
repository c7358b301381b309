//! Temporary keys, by the requests of AWS' Security Token Service at the address of S3: a POST to
//! `/` with a form. `request` parses the form, `answer` creates the key, `document` writes the
//! responses.

pub(crate) mod answer;
pub(crate) mod document;
mod request;
