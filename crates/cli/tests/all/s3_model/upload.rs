//! Multipart uploads of the test, which survive the death of the server.

use super::Run;
use super::act::fields_of;
use super::client::{assert_error, element, text};
use super::model::Content;

/// The length of a part that is not the last one.
const PART_BYTES: usize = 5 << 20;

/// An upload that is not completed.
#[derive(Debug)]
pub(super) struct Upload {
    bucket: usize,
    key: &'static str,
    id: String,
    content: Content,
    /// The entries for the completion.
    parts: String,
}

impl Run {
    /// Starts an upload, and stores its parts.
    pub(super) fn start_upload(&mut self, bucket: usize, key: &'static str) {
        let mut content = self.content(bucket);
        if self.random.below(8) == 0 {
            let more = self.random.index(1000);
            content.bytes = self.random.bytes(PART_BYTES + more).into();
        }
        let target = super::target(self.buckets[bucket].name, key, None, "");
        let fields = fields_of(&content);
        let started = self.client.send(("POST", &format!("{target}?uploads")), &fields, b"");
        assert_eq!(started.status, 200, "{target}: {}", text(&started));
        let id = element(text(&started), "UploadId").unwrap();
        let mut parts = String::new();
        let mut pieces: Vec<&[u8]> = content.bytes.chunks(PART_BYTES).collect();
        if pieces.is_empty() {
            pieces.push(b"");
        }
        for (number, piece) in (1..).zip(pieces) {
            let target = format!("{target}?partNumber={number}&uploadId={id}");
            let stored = self.client.send(("PUT", &target), &[], piece);
            assert_eq!(stored.status, 200, "{target}: {}", text(&stored));
            let etag = stored.field("etag").unwrap();
            parts += &format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>");
        }
        self.uploads.push(Upload { bucket, key, id, content, parts });
    }

    /// Completes or aborts an upload that was started earlier.
    pub(super) fn end_upload(&mut self) {
        if self.uploads.is_empty() {
            return;
        }
        let index = self.random.index(self.uploads.len());
        let Upload { bucket, key, id, content, parts } = self.uploads.swap_remove(index);
        let target = super::target(self.buckets[bucket].name, key, None, "");
        let target = format!("{target}?uploadId={id}");
        if self.random.below(4) == 0 {
            let aborted = self.client.send(("DELETE", &target), &[], b"");
            assert_eq!(aborted.status, 204, "DELETE {target}: {}", text(&aborted));
            let again = self.client.send(("GET", &target), &[], b"");
            return assert_error(&again, 404, "NoSuchUpload", &target);
        }
        let body = format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>");
        let done = self.client.send(("POST", &target), &[], body.as_bytes());
        assert_eq!(done.status, 200, "POST {target}: {}", text(&done));
        let etag = element(text(&done), "ETag").unwrap();
        self.stored(bucket, key, done.field("x-amz-version-id"), Content { etag, ..content });
    }
}
