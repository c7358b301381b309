//! Skips the holes of sparse files: locates them, and delivers their zeros without a read.

use std::os::fd::AsFd;

use haul_disk::next_hole;

use super::consumer::Consumer;
use super::request::ReadSummary;
use super::stream::{HOLE_BYTES_MIN, Stream};
use super::worker::{PIECE_BYTES, Worker};
use crate::error::Error;
use crate::status::status;

static ZEROS: [u8; PIECE_BYTES] = [0; PIECE_BYTES];

impl<C: Consumer> Worker<'_, C> {
    /// Locates the next hole of a stream that may have one.
    ///
    /// # Errors
    /// [`Error::Shrunk`] if the file ends before the requested range does.
    pub(super) fn locate_hole(&self, stream: &mut Stream<C::State>) -> Result<(), Error> {
        let Some(range) = stream.hole_search() else { return Ok(()) };
        // After an error, the rest is read, holes included.
        let hole = next_hole(stream.fd().as_fd(), range, HOLE_BYTES_MIN).unwrap_or_default();
        if hole.as_ref().is_some_and(|hole| hole.end == stream.end) {
            // The bytes after the end of a file that shrank look like a hole.
            let bytes = status(&**stream.fd()).map_or(0, |status| status.meta.bytes);
            if bytes < stream.end {
                return Err(self.shrunk(stream, bytes));
            }
            stream.record_length(bytes);
        }
        stream.set_hole(hole);
        Ok(())
    }

    /// Queues and delivers the zeros of each hole that a stream reaches before its next
    /// asynchronous read.
    pub(super) fn pass_holes(&mut self, index: usize) {
        let Some(mut stream) = self.streams[index].take() else { return };
        while !stream.has_ended() {
            if let Err(error) = self.locate_hole(&mut stream) {
                self.end_stream(&mut stream, Err(error));
            } else if stream.queue_hole() {
                self.deliver(&mut stream);
            } else {
                break;
            }
        }
        if !stream.has_ended() || stream.has_reads_in_flight() {
            self.streams[index] = Some(stream);
        }
    }

    /// Delivers `bytes` zeros of a hole; returns the outcome if the request thereby ends.
    pub(super) fn deliver_zeros(
        &mut self,
        stream: &mut Stream<C::State>,
        mut bytes: u64,
    ) -> Option<Result<ReadSummary, Error>> {
        let request = stream.request;
        if let Some(flow) = self.run.consumer.zeros(stream.state_mut()?, request, bytes) {
            self.count.bytes += bytes;
            self.report_if_due();
            return flow.is_break().then(|| Ok(stream.summary()));
        }
        while bytes > 0 {
            let piece = usize::try_from(bytes).map_or(PIECE_BYTES, |left| left.min(PIECE_BYTES));
            bytes -= piece as u64;
            self.count.bytes += piece as u64;
            if self.run.consumer.piece(stream.state_mut()?, request, &ZEROS[..piece]).is_break() {
                return Some(Ok(stream.summary()));
            }
            self.report_if_due();
            if self.run.is_stopped() {
                return Some(Err(self.stopped(stream)));
            }
        }
        None
    }
}
