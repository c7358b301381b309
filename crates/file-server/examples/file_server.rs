//! Serves a directory over HTTP, and requests a range of a file.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;

use haul_file_server::{Address, Config, Server};

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("greeting.txt"), "hello")?;
    let mut config = Config::new(dir.path());
    config.listen = "127.0.0.1:0".parse()?; // any free port
    let server = Server::bind(config)?;
    let Address::Tcp(address) = server.addresses().listen else { return Err("no TCP".into()) };
    let handle = server.handle();
    let thread = std::thread::spawn(|| server.run());

    let mut client = TcpStream::connect(address)?;
    client.write_all(b"GET /greeting.txt HTTP/1.0\r\nRange: bytes=1-3\r\n\r\n")?;
    let mut response = String::new();
    client.read_to_string(&mut response)?;
    println!("{response}");
    assert!(response.starts_with("HTTP/1.1 206 ") && response.ends_with("\r\n\r\nell"));

    handle.drain(); // accepts no more connections, and completes the responses under way
    thread.join().map_err(|_panic| "the server failed")??;
    Ok(())
}
