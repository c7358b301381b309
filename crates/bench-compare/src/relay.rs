//! Relays TCP connections with tokio's `copy_bidirectional` on one thread.

use std::net::SocketAddr;

use haul_bench::log::Failure;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;

/// Relays connections until the process is killed.
pub(crate) fn run(listen: SocketAddr, to: SocketAddr, buffer_bytes: usize) -> Result<(), Failure> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(listen).await?;
        loop {
            let (client, _) = listener.accept().await?;
            // An error is ignored: a failed connection does not affect the other connections.
            tokio::spawn(async move { relay(client, to, buffer_bytes).await.ok() });
        }
    })
}

async fn relay(mut client: TcpStream, to: SocketAddr, buffer_bytes: usize) -> std::io::Result<()> {
    let mut target = TcpStream::connect(to).await?;
    client.set_nodelay(true)?;
    target.set_nodelay(true)?;
    copy_bidirectional_with_sizes(&mut client, &mut target, buffer_bytes, buffer_bytes).await?;
    Ok(())
}
