//! Measures the servers under one workload after the other.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::listing::{self, Response};
use super::options::Options;
use super::servers::Servers;
use super::workload::Load;
use crate::contest::Stage;
use crate::net::comparison::{Comparison, Contender};
use crate::net::content::Content;
use crate::net::http::client::{Client, random};
use crate::net::http::s3::Requests;
use crate::net::http::site::Site;
use crate::net::sample::{Extent, Sample};
use crate::net::server::Server;
use crate::net::socket::invalid;
use haul_measure::{Result, Watcher};

/// The bucket of the objects that are stored and read, and the one that is listed.
const BUCKET: &str = "bench";
const LISTED: &str = "listed";
/// The number of objects that are read.
const OBJECTS: usize = 1000;
/// The number of times that each of them is read before the first measurement.
const WARM_UPS: usize = 4;
/// The number of objects to be listed that are stored at a time.
const BATCH: usize = 10_000;
/// The time within which a server that listens must create a bucket and store an object, and the
/// time between two attempts.
const READY_MAX: Duration = Duration::from_secs(60);
const READY_INTERVAL: Duration = Duration::from_millis(200);

/// The benchmark of S3 servers: its inputs, and its results so far.
pub(super) struct Bench<'a> {
    pub(super) comparison: Comparison<Load>,
    /// The workloads measured so far.
    pub(super) workloads: Vec<Load>,
    tools: Tools<'a>,
}

/// The inputs of every measurement.
struct Tools<'a> {
    options: &'a Options,
    watcher: &'a dyn Watcher,
    servers: &'a Servers,
    /// The number of PUT measurements so far, from which new keys are formed.
    puts: Cell<usize>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(
        options: &'a Options,
        watcher: &'a dyn Watcher,
        servers: &'a Servers,
        comparison: Comparison<Load>,
    ) -> Self {
        let tools = Tools { options, watcher, servers, puts: Cell::new(0) };
        Self { comparison, workloads: Vec::new(), tools }
    }

    /// Starts the servers and measures the selected parts.
    pub(super) fn run(&mut self) -> Result<()> {
        let Self { comparison, tools, .. } = self;
        comparison.for_each(|one| {
            tools.watcher.check()?;
            let server = tools.servers.start(one.variant)?;
            tools.wait_until_it_stores(&server)?;
            one.server = Some(server);
            Ok(())
        })?;
        Load::all(tools.options).into_iter().try_for_each(|load| self.measure(load))
    }

    fn measure(&mut self, load: Load) -> Result<()> {
        let Self { comparison, tools, .. } = self;
        comparison.for_each(|one| tools.prepare(load, one))?;
        let stage = Stage::only(tools.options.rounds, tools.watcher);
        comparison.run(load, &stage, |_| true, |one| tools.sample(load, one))?;
        self.workloads.push(load);
        Ok(())
    }
}

impl Tools<'_> {
    /// Creates the buckets, and stores an object in each.
    fn wait_until_it_stores(&self, server: &Server) -> Result<()> {
        let requests = self.requests(server);
        let end = Instant::now() + READY_MAX;
        for path in [BUCKET, LISTED].iter().flat_map(|bucket| {
            let first = format!("/{bucket}/first");
            [format!("/{bucket}"), first]
        }) {
            loop {
                self.watcher.check()?;
                let Response { status, body } =
                    listing::send(server.address, &requests.put_once(&path, b""))?;
                match status {
                    200 => break,
                    _ if Instant::now() < end => thread::sleep(READY_INTERVAL),
                    _ => {
                        return Err(invalid(format!("PUT {path} has the status {status}: {body}")));
                    }
                }
            }
        }
        Ok(())
    }

    /// Stores the objects that are read or listed, and reads those that are read.
    fn prepare(&self, load: Load, one: &Contender) -> Result<()> {
        let server = one.server()?;
        match load {
            Load::Put(_) => self.put(server, BUCKET, &self.new_keys(), load).map(drop),
            Load::Get(bytes) => {
                self.put(server, BUCKET, &read_keys(bytes), load)?;
                let site = self.read_site(server, bytes);
                let mut client = self.client(&site, server)?;
                client.compare_all = true;
                (0..WARM_UPS).try_for_each(|_| {
                    client.fetch_once(&(0..site.pages.len()), server.meter).map(drop)
                })
            }
            Load::List(keys) => {
                let keys = usize::try_from(keys).unwrap_or(usize::MAX);
                let mut numbers = (1..keys).peekable();
                while numbers.peek().is_some() {
                    let batch = numbers.by_ref().take(BATCH);
                    let key = |number| format!("{:03}/{number:09}", number % 1000);
                    self.put(server, LISTED, &batch.map(key).collect::<Vec<_>>(), load)?;
                    self.watcher.check()?;
                }
                Ok(())
            }
        }
    }

    fn sample(&self, load: Load, one: &Contender) -> Result<Sample> {
        let server = one.server()?;
        match load {
            Load::Put(_) => self.put(server, BUCKET, &self.new_keys(), load),
            Load::Get(bytes) => {
                let site = self.read_site(server, bytes);
                let mut client = self.client(&site, server)?;
                let all = 0..site.pages.len();
                let (mut pages, mut left) = (random(&all, 1), self.options.gets);
                let next = || {
                    left = left.checked_sub(1)?;
                    pages()
                };
                client.fetch(next, Extent::Requests(self.options.gets as u64), server.meter)
            }
            Load::List(keys) => self.list(server, keys),
        }
    }

    /// Stores an object of the length of the workload under each key.
    fn put(&self, server: &Server, bucket: &str, keys: &[String], load: Load) -> Result<Sample> {
        let bytes = match load {
            Load::Put(bytes) | Load::Get(bytes) => bytes,
            Load::List(_) => 1,
        };
        let mut body = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
        Content(0).fill(0, &mut body);
        let requests = self.requests(server);
        let put = |key: &String| requests.put(&format!("/{bucket}/{key}"), &body);
        let site = Site::of_requests(keys.iter().map(put), 0);
        self.client(&site, server)?.fetch_once(&(0..keys.len()), server.meter)
    }

    /// Lists the bucket once, and counts its keys as requests.
    fn list(&self, server: &Server, keys: u64) -> Result<Sample> {
        let requests = self.requests(server);
        let (start, before) = (Instant::now(), server.meter.usage());
        let listed = listing::list((&requests, server.address), LISTED, || self.watcher.check())?;
        let (wall, used) = (start.elapsed(), before.until(&server.meter.usage()));
        if listed != keys {
            return Err(invalid(format!("a listing of {keys} keys has {listed}")));
        }
        Ok(Sample { wall, requests: keys, used, ..Sample::default() })
    }

    /// Returns the keys of the PUT measurement that runs now.
    fn new_keys(&self) -> Vec<String> {
        let measurement = self.puts.replace(self.puts.get() + 1);
        (0..self.options.puts).map(|number| format!("{measurement:06}/{number:06}")).collect()
    }

    /// Returns the requests for the objects that are read.
    fn read_site(&self, server: &Server, bytes: u64) -> Site {
        let requests = self.requests(server);
        let keys = read_keys(bytes);
        Site::of_requests(keys.iter().map(|key| requests.get(&format!("/{BUCKET}/{key}"))), bytes)
    }

    fn client<'a>(&'a self, site: &'a Site, server: &Server) -> Result<Client<'a>> {
        Client::new(site, self.watcher, server.address, self.options.connections, None)
    }

    fn requests(&self, server: &Server) -> Requests {
        Requests::signed(server.address, self.options.signature, SystemTime::now())
    }
}

fn read_keys(bytes: u64) -> Vec<String> {
    (0..OBJECTS).map(|number| format!("read-{bytes}/{number:06}")).collect()
}
