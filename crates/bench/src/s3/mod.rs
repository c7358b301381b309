//! Compares `haul serve` with other S3 servers.
//!
//! MinIO's warp stores objects with signed requests. wrk reads objects, and lists pages of 1,000 keys,
//! with presigned requests. The files of all servers are in the same file system.

mod options;
mod servers;
mod warp;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::benchmark::Benchmark;
use crate::net::bench::{Bench, Case, Contender, Rival, Tools};
use crate::net::client::Request;
use crate::net::objects::{Access, Objects, create_bucket};
use crate::net::presigned::Signer;
use crate::net::sample::{CPU, RATE};
use crate::net::wrk::Load;
use crate::reads::joined;
use crate::report::Report;
use haul_measure::{Error, Result, Watcher};
pub use options::{Options, Part};
use servers::RIVALS;

/// The bucket of the objects that are listed.
const LISTED: &str = "listed";
const PAGE_KEYS: usize = 1000;

impl Benchmark for Options {
    const NAME: &'static str = "s3";

    fn run(&self, watcher: &dyn Watcher) -> Result<Report> {
        let mut bench = Bench::new(Self::NAME, &self.net, &RIVALS, watcher)?;
        bench.report.notes.push(
            "haul serve syncs each object before it responds; in their default settings, which are used \
             here, the other servers do not. serve runs without scrub and lifecycle checks."
                .to_owned(),
        );
        for part in self.parts.iter().copied() {
            match part {
                Part::List => list(&mut bench, self)?,
                Part::Get => self.object_bytes.iter().try_for_each(|bytes| {
                    let presigned = |_: &Rival| Access::Presigned;
                    let objects = Objects::create(&bench, *bytes, self.connections, presigned)?;
                    objects.get(&mut bench, &[RATE, CPU], &RIVALS)
                })?,
                Part::Put => warp::put(&mut bench, self)?,
            }
        }
        bench.stop_servers();
        Ok(bench.report)
    }
}

/// Lists pages of a bucket in random order. Before the first round, the whole bucket is listed, and
/// its keys are counted.
fn list(bench: &mut Bench<'_>, options: &Options) -> Result<()> {
    let keys = options.list_keys;
    let name = |number: usize| format!("{number:09}");
    let pages = |address: SocketAddr| -> Vec<String> {
        let signer = Signer::new(address);
        let starts = (0..keys).step_by(PAGE_KEYS).map(|first| match first.checked_sub(1) {
            Some(last) => format!("&start-after={}", name(last)),
            None => String::new(),
        });
        let target = |start| {
            let query = format!("list-type=2&max-keys={PAGE_KEYS}{start}");
            signer.target("GET", &format!("/{LISTED}"), &query)
        };
        starts.map(target).collect()
    };
    let (load, key) = (format!("LIST {keys} keys"), "list".to_owned());
    let (table, figures, rivals) = ("pages of 1000 listed keys", &[RATE, CPU], &RIVALS);
    let prepare = |tools: &Tools<'_>, one: &mut Contender| {
        let address = one.server(tools)?.address;
        create_bucket(tools, address, LISTED, Access::Presigned)?;
        let (next, signer) = (AtomicUsize::new(0), Signer::new(address));
        let writer = || -> Result<()> {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= keys {
                    return Ok(());
                }
                let path = format!("/{LISTED}/{}", name(number));
                Request::put(address, &signer.target("PUT", &path, ""), b"x").send()?;
            }
        };
        thread::scope(|scope| {
            let writers: Vec<_> = (0..options.connections).map(|_| scope.spawn(writer)).collect();
            writers.into_iter().try_for_each(joined)
        })?;
        let mut listed = 0;
        for target in pages(address) {
            let page = Request::get(address, &target).send()?;
            listed += String::from_utf8_lossy(&page).matches("<Key>").count();
        }
        match listed == keys {
            true => Ok(()),
            false => Err(Error::Missing(format!("a listing of {keys} keys has {listed}"))),
        }
    };
    bench.run(&Case { table, load, key, figures, rivals }, prepare, |tools, one| {
        let server = one.server(tools)?;
        let requests: Vec<_> =
            pages(server.address).iter().map(|target| format!("GET {target}")).collect();
        tools.load(server, &Load::new(&requests, options.connections, 1))
    })
}
