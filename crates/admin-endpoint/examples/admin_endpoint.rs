//! Serves the metrics and the health of a server, and requests them.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;

use haul_admin_endpoint::{Address, Admin, StatusSource};

struct Idle;
impl StatusSource for Idle {
    fn metrics(&self) -> String {
        "requests_total 0\n".to_owned()
    }
    fn unready_reason(&self) -> Option<&'static str> {
        None
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let admin = Admin::bind(&"127.0.0.1:0".parse()?, Idle)?;
    let Address::Tcp(address) = *admin.address() else { return Err("no TCP".into()) };
    for path in ["/metrics", "/health", "/ready"] {
        let mut client = TcpStream::connect(address)?;
        write!(client, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
        let mut response = String::new();
        client.read_to_string(&mut response)?;
        println!("{response}");
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"));
    }
    Ok(())
}
