//! A relay as tokio has it: `copy_bidirectional`, on one thread.

use std::net::SocketAddr;

use haul_bench::log::Failure;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;

/// Relays until the process is killed.
pub(crate) fn run(listen: SocketAddr, to: SocketAddr, buffer_bytes: usize) -> Result<(), Failure> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(listen).await?;
        loop {
            let (near, _) = listener.accept().await?;
            // A connection that fails is its own affair.
            tokio::spawn(async move { one(near, to, buffer_bytes).await.ok() });
        }
    })
}

async fn one(mut near: TcpStream, to: SocketAddr, buffer_bytes: usize) -> std::io::Result<()> {
    let mut far = TcpStream::connect(to).await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    copy_bidirectional_with_sizes(&mut near, &mut far, buffer_bytes, buffer_bytes).await?;
    Ok(())
}
