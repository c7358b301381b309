//! Copies the buckets of one server to another one. Both run in this process.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use haul_file_store::{Options as StoreOptions, Store};
use haul_s3_copy::{Endpoint, Event, Events, Options, run};
use haul_s3_server::{Config, Server};

struct Printed;

impl Events for Printed {
    fn is_stopped(&self) -> bool {
        false
    }
    fn happened(&self, event: &Event<'_>, _summary: &haul_s3_copy::Summary) {
        println!("{event:?}");
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let dir = tempfile::tempdir()?;
    let mut urls = Vec::new();
    for name in ["from", "to"] {
        let small =
            StoreOptions { volume_bytes: 4 << 20, big_object_bytes: 1 << 20, ..Default::default() };
        let (store, _recovered) = Store::open(&dir.path().join(name), small)?;
        if name == "from" {
            store.create_bucket("photos")?;
        }
        let local = SocketAddr::from(([127, 0, 0, 1], 0)); // any free port
        let config = Config { listen: local, admin: local, ..Config::default() };
        let server = Server::bind(config, Arc::new(store.into()))?;
        urls.push(server.addresses().listen);
        tokio::spawn(server.run(std::future::pending()));
    }
    let copied = tokio::task::spawn_blocking(move || {
        let mut client = TcpStream::connect(urls[0])?;
        let head = "PUT /photos/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n";
        write!(client, "{head}Connection: close\r\n\r\none")?;
        std::io::copy(&mut client, &mut std::io::sink())?;
        let [from, to] =
            [urls[0], urls[1]].map(|address| Endpoint::new(format!("http://{address}")));
        Ok::<_, Box<dyn Error + Send + Sync>>(run(&Options::new(from, to), &Printed)?)
    });
    let summary = copied.await??;
    assert_eq!((summary.buckets, summary.objects, summary.bytes), (1, 1, 3));
    Ok(())
}
