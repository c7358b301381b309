//! Request and response bodies: memory, framing, checksums, transfer.

pub(crate) mod aws_chunked;
pub(crate) mod checksum;
pub(crate) mod copy;
pub(crate) mod digests;
pub(crate) mod error;
pub(crate) mod hasher;
pub(crate) mod part_checksums;
pub(crate) mod receive;
pub(crate) mod send;

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use haul_http_engine::RequestBody;
use http_body::{Body as HttpBody, Frame};
use http_body_util::{BodyExt, Empty};

use crate::body::aws_chunked::DecodedBody;
use crate::body::error::BodyError;

pub(crate) enum Body {
    Plain(RequestBody),
    /// Chunks in `aws-chunked` framing.
    Chunks(Box<DecodedBody>),
    /// The file in a form.
    Form(Pin<Box<dyn HttpBody<Data = Bytes, Error = BodyError> + Send>>),
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self::Form(Box::pin(Empty::new().map_err(|never| match never {})))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::Plain(body) => {
                let frame = Pin::new(body).poll_frame(context);
                frame.map(|frame| frame.map(|frame| frame.map_err(|_cut| BodyError::Cut)))
            }
            Self::Chunks(body) => Pin::new(&mut **body).poll_frame(context),
            Self::Form(body) => body.as_mut().poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Plain(body) => body.is_end_stream(),
            Self::Chunks(body) => body.is_end_stream(),
            Self::Form(body) => body.is_end_stream(),
        }
    }
}
