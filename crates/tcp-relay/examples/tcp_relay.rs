//! Relays a connection to a target.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use haul_tcp_relay::{Address, Config, Server};

fn main() -> Result<(), Box<dyn Error>> {
    let target = TcpListener::bind("127.0.0.1:0")?;
    let to = Address::Tcp(target.local_addr()?);
    let relay = Server::bind(Config::new(vec!["127.0.0.1:0".parse()?], vec![to]))?;
    let Address::Tcp(address) = relay.addresses().listen[0] else { return Err("no TCP".into()) };
    let handle = relay.handle();
    let thread = std::thread::spawn(|| relay.run());

    let mut client = TcpStream::connect(address)?;
    client.write_all(b"hello")?;
    let mut greeting = [0; 5];
    target.accept()?.0.read_exact(&mut greeting)?;
    assert_eq!(&greeting, b"hello");

    drop(client);
    handle.drain();
    let stats = thread.join().map_err(|_panic| "the relay failed")??;
    println!("{} bytes relayed to the target", stats.up.bytes_copied);
    Ok(())
}
