//! Serves a store over S3 and plain HTTP, and stores and reads an object as curl does.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use haul_file_store::Options;
use haul_s3_server::{Config, Server};
use haul_store_pool::Pool;

/// Sends a request, and returns the response.
fn send(address: SocketAddr, request: &str, body: &str) -> std::io::Result<String> {
    let mut client = TcpStream::connect(address)?;
    let fields = format!("Host: localhost\r\nContent-Length: {}\r\n", body.len());
    write!(client, "{request} HTTP/1.1\r\n{fields}Connection: close\r\n\r\n{body}")?;
    let mut response = String::new();
    client.read_to_string(&mut response)?;
    Ok(response)
}

fn exchange(address: SocketAddr) -> Result<(), Box<dyn Error + Send + Sync>> {
    assert!(send(address, "PUT /notes", "")?.starts_with("HTTP/1.1 200 "));
    let put = send(address, "PUT /notes/first.txt", "hello")?;
    assert!(put.starts_with("HTTP/1.1 200 ")); // the object is durable
    assert!(send(address, "GET /notes/first.txt", "")?.ends_with("\r\n\r\nhello"));
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let dir = tempfile::tempdir()?;
    let small = Options { volume_bytes: 4 << 20, big_object_bytes: 1 << 20, ..Options::default() };
    let (store, _recovered) = Pool::open(&[dir.path().to_owned()], &small)?;
    let local = SocketAddr::from(([127, 0, 0, 1], 0)); // any free port
    let config = Config { listen: local, admin: local, ..Config::default() };
    let server = Server::bind(config, Arc::new(store))?;
    let address = server.addresses().listen;
    let client = tokio::task::spawn_blocking(move || exchange(address));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = tokio::spawn(server.run(async { stopped.await.unwrap_or_default() }));
    client.await??;
    drop(stop); // completes the requests under way, and ends
    Ok(server.await??)
}
