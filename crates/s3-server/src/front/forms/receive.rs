//! Receives a form's fields.

use std::time::Duration;

use bytes::BytesMut;
use haul_http_engine::RequestBody;
use http_body_util::BodyExt;

use crate::errors::{S3Error, S3ErrorCode, S3Result, invalid_argument, refuse};
use crate::front::forms::fields::{FormFields, Parsed, Parser, delimiter};
use crate::front::forms::file::FileBody;
use crate::request::head::Head;

/// The maximum length of the fields before the file, in bytes. S3 allows 20 KB.
const FIELDS_BYTES_MAX: usize = 64 * 1024;

/// A form whose fields have arrived.
pub(super) struct Form {
    pub(super) fields: FormFields,
    pub(super) file: FileBody<RequestBody>,
}

impl Form {
    /// Receives a form's fields up to the file's content, with at most `stall_time_max` between two
    /// pieces.
    pub(super) async fn receive(
        head: &Head,
        mut body: RequestBody,
        stall_time_max: Duration,
    ) -> S3Result<Self> {
        let delimiter = head.fields.text("content-type").and_then(delimiter);
        let delimiter = delimiter.ok_or_else(|| malformed("its content type has no boundary"))?;
        let mut parser = Parser::new(delimiter);
        let mut received = BytesMut::new();
        loop {
            match parser.parse(&received).map_err(|reason| malformed(&reason))? {
                Parsed::Complete(_, begin) if begin > FIELDS_BYTES_MAX => return Err(too_long()),
                Parsed::Complete(fields, begin) => {
                    let pending = received.split_off(begin).freeze();
                    let file = FileBody::new(body, parser.delimiter(), pending);
                    return Ok(Self { fields, file });
                }
                Parsed::NoFile => return Err(no_file()),
                Parsed::Incomplete if received.len() > FIELDS_BYTES_MAX => return Err(too_long()),
                Parsed::Incomplete => {}
            }
            let Ok(frame) = tokio::time::timeout(stall_time_max, body.frame()).await else {
                let message = format!("No byte was received for {stall_time_max:?}");
                return Err(refuse(S3ErrorCode::RequestTimeout, message));
            };
            let chunk = frame.and_then(|frame| frame.ok()?.into_data().ok());
            let chunk = chunk.ok_or_else(|| malformed("it ends before the content of a file"))?;
            received.extend_from_slice(&chunk);
        }
    }
}

fn no_file() -> S3Error {
    invalid_argument("file", "0", "POST requires exactly one file upload per request.")
}

fn too_long() -> S3Error {
    let message =
        format!("The fields of a form before the file have at most {FIELDS_BYTES_MAX} bytes");
    refuse(S3ErrorCode::MaxPostPreDataLengthExceededError, message)
}

fn malformed(reason: &str) -> S3Error {
    let message = format!("The body of the request is not a form of multipart/form-data: {reason}");
    refuse(S3ErrorCode::MalformedPOSTRequest, message)
}
