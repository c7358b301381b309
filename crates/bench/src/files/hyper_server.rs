//! A file server of few lines with hyper on one thread: the server that an author who needs only
//! GET would write. It keeps each file in memory after the first request.

use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::fs;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::rt::ReadBufCursor;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::task::{LocalSet, spawn_local};

/// The maximum number of bytes received at a time.
const READ_BYTES: usize = 8 << 10;

type Files = Rc<RefCell<HashMap<String, Bytes>>>;

/// Serves the files below `root` to the connections of `listener` until the process ends.
///
/// # Errors
/// Returns the error of the listening socket.
pub fn serve(root: &Path, listener: std::net::TcpListener) -> io::Result<Infallible> {
    listener.set_nonblocking(true)?;
    let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
    LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::from_std(listener)?;
        let (files, root) = (Files::default(), Rc::<Path>::from(root));
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let (files, root) = (Rc::clone(&files), Rc::clone(&root));
            let service = service_fn(move |request| {
                let response = respond(&root, &files, &request);
                async { Ok::<_, Infallible>(response) }
            });
            let connection = http1::Builder::new()
                .pipeline_flush(true)
                .serve_connection(Socket(stream), service);
            spawn_local(async {
                // A connection that the client resets ends with an error.
                connection.await.unwrap_or_default();
            });
        }
    })
}

fn respond(root: &Path, files: &Files, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let name = request.uri().path().trim_start_matches('/');
    let cached = files.borrow().get(name).cloned();
    let file = cached.or_else(|| {
        let is_below_root = name.split('/').all(|part| part != "..");
        let bytes = Bytes::from(is_below_root.then(|| fs::read(root.join(name)).ok())??);
        files.borrow_mut().insert(name.to_owned(), bytes.clone());
        Some(bytes)
    });
    let mut response = Response::new(Full::from(Bytes::new()));
    match file {
        Some(bytes) => *response.body_mut() = Full::from(bytes),
        None => *response.status_mut() = StatusCode::NOT_FOUND,
    }
    response
}

/// A socket of tokio with the traits of hyper.
struct Socket(TcpStream);

impl hyper::rt::Read for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut bytes = [MaybeUninit::uninit(); READ_BYTES];
        let room = buffer.remaining().min(bytes.len());
        let mut received = ReadBuf::uninit(&mut bytes[..room]);
        ready!(Pin::new(&mut self.0).poll_read(context, &mut received))?;
        buffer.put_slice(received.filled());
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Write for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, slices)
    }
}
