//! A socket whose connection knows what it received and whether it is blocked.

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::connection::Connection;

/// A socket that reports to its connection.
pub(crate) struct Tracked {
    io: TokioIo<TcpStream>,
    connection: Arc<Connection>,
}

impl Tracked {
    pub(crate) fn new(stream: TcpStream, connection: Arc<Connection>) -> Self {
        Self { io: TokioIo::new(stream), connection }
    }

    fn sent(&self, outcome: Poll<Result<usize>>) -> Poll<Result<usize>> {
        self.connection.sent(outcome.is_pending());
        outcome
    }
}

impl Read for Tracked {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: ReadBufCursor<'_>,
    ) -> Poll<Result<()>> {
        let outcome = Pin::new(&mut self.io).poll_read(context, bytes);
        if outcome.is_ready() {
            self.connection.received();
        }
        outcome
    }
}

impl Write for Tracked {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let outcome = Pin::new(&mut self.io).poll_write(context, bytes);
        self.sent(outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let outcome = Pin::new(&mut self.io).poll_write_vectored(context, slices);
        self.sent(outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
