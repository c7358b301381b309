//! Measures the servers under one workload after the other.

use std::cell::Cell;
use std::time::SystemTime;

use haul_file_store::Store;

use super::objects::{self, BUCKET};
use super::options::{Options, PUT_BYTES, Part};
use super::servers::{SERVE, SIGNED, STORE, Servers};
use super::workload::{Load, takes_part};
use crate::contest::Stage;
use crate::net::comparison::{Comparison, Contender, Variant};
use crate::net::content::Content;
use crate::net::cores::Pinned;
use crate::net::http::client::{Client, random};
use crate::net::http::s3::{Requests, SignatureKind};
use crate::net::http::site::{Pages, Site};
use crate::net::sample::{Extent, Sample};
use crate::net::server::Server;
use haul_measure::{Result, Watcher};

/// The total length in bytes of the objects of one size, and the bounds of their number.
const TOTAL_BYTES: u64 = 32 << 20;
const OBJECTS_MIN: u64 = 2;
const OBJECTS_MAX: u64 = 1000;
/// The number of keys that are overwritten in turn.
const OVERWRITTEN: usize = 1000;
/// The number of requests for each object before the first measurement. Servers admit some objects
/// to their caches only after several requests.
const WARM_UPS: usize = 4;
/// The maximum number of measurements for one result: the CPU time of a measurement is unknown if
/// an idle thread of the server ended in the meantime.
const ATTEMPTS: usize = 5;

/// The benchmark of `haul serve`: its inputs, and its results so far.
pub(super) struct Bench<'a> {
    pub(super) comparison: Comparison<Load>,
    /// The workloads measured so far.
    pub(super) workloads: Vec<Load>,
    tools: Tools<'a>,
}

/// The options, the objects and the store without a server: the inputs of every measurement.
struct Tools<'a> {
    options: &'a Options,
    watcher: &'a dyn Watcher,
    servers: &'a Servers,
    site: Site,
    sizes: Vec<(u64, Pages)>,
    store: Option<Store>,
    /// The number of PUT measurements so far, from which new keys are formed.
    puts: Cell<usize>,
}

impl<'a> Bench<'a> {
    /// Creates the files, and the stores with an object for each file.
    pub(super) fn new(
        options: &'a Options,
        watcher: &'a dyn Watcher,
        servers: &'a Servers,
        comparison: Comparison<Load>,
    ) -> Result<Self> {
        watcher.step(0, 1, "creating the files and the stores");
        let mut site = Site::new(&servers.site(), servers.cores);
        let is_get = options.parts.contains(&Part::Get);
        let mut sizes = Vec::new();
        for bytes in options.object_bytes.iter().copied().filter(|_| is_get) {
            let count = (TOTAL_BYTES / bytes).clamp(OBJECTS_MIN, OBJECTS_MAX);
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            sizes.push((bytes, site.add(&format!("get-{bytes}"), count, bytes, watcher)?));
        }
        for variant in [&SERVE, &SIGNED] {
            objects::create(&servers.store(variant), &site, watcher)?;
        }
        let is_put = options.parts.contains(&Part::Put);
        let pinned = Pinned::to(servers.cores.server)?;
        let store = is_put.then(|| objects::open(&servers.store(&STORE))).transpose()?;
        drop(pinned);
        let puts = Cell::new(0);
        let tools = Tools { options, watcher, servers, site, sizes, store, puts };
        Ok(Self { comparison, workloads: Vec::new(), tools })
    }

    /// Starts the servers and measures the selected parts.
    pub(super) fn run(&mut self) -> Result<()> {
        let Self { comparison, tools, .. } = self;
        let is_put = tools.options.parts.contains(&Part::Put);
        let mut loads: Vec<_> = tools.sizes.iter().map(|(bytes, _)| Load::Get(*bytes)).collect();
        loads.extend(is_put.then_some([Load::PutNew, Load::PutOverwrite]).into_iter().flatten());
        comparison.for_each(|one| {
            let is_needed = loads.iter().any(|load| takes_part(one.variant, *load));
            if is_needed && *one.variant != STORE {
                one.server = Some(tools.servers.start(one.variant)?);
            }
            Ok(())
        })?;
        loads.into_iter().try_for_each(|load| self.measure(load))?;
        self.comparison.contenders.iter_mut().for_each(|one| one.server = None);
        self.tools.store.take().map(objects::close).transpose().map(drop)
    }

    /// Measures one workload. Before the first round, the results of each server are compared byte
    /// by byte.
    fn measure(&mut self, load: Load) -> Result<()> {
        let Self { comparison, tools, .. } = self;
        let selected = |variant: &Variant| takes_part(variant, load);
        comparison.for_each(|one| match selected(one.variant) {
            true => tools.prepare(load, one),
            false => Ok(()),
        })?;
        let stage = Stage::only(tools.options.rounds, tools.watcher);
        comparison.run(load, &stage, selected, |one| {
            let mut sample = tools.sample(load, one)?;
            for _ in 1..ATTEMPTS {
                if sample.used.process.is_some() {
                    break;
                }
                sample = tools.sample(load, one)?;
            }
            Ok(sample)
        })?;
        self.workloads.push(load);
        Ok(())
    }
}

impl Tools<'_> {
    /// Loads the objects of GET requests into memory; stores the objects that are overwritten.
    fn prepare(&self, load: Load, one: &Contender) -> Result<()> {
        match load {
            Load::Get(bytes) => {
                let pages = self.pages(bytes);
                self.site.load(&pages)?;
                let server = one.server()?;
                let site =
                    self.site.with_requests(|page| self.get(one.variant, server, &page.name));
                (0..WARM_UPS).try_for_each(|_| self.compare(&site, &pages, server))
            }
            Load::PutNew | Load::PutOverwrite => {
                self.put(load, one)?;
                self.verify(load, one)
            }
        }
    }

    fn sample(&self, load: Load, one: &Contender) -> Result<Sample> {
        let Load::Get(bytes) = load else { return self.put(load, one) };
        let server = one.server()?;
        let site = self.site.with_requests(|page| self.get(one.variant, server, &page.name));
        let mut client = self.client(&site, server)?;
        let count = self.options.gets(bytes);
        let pages = self.pages(bytes);
        let mut pages = random(&pages, 1);
        let mut left = 0..count;
        let extent = Extent::Requests(count as u64);
        client.fetch(|| left.next().and_then(|_| pages()), extent, server.meter)
    }

    /// Stores objects by PUT requests, or without a server.
    fn put(&self, load: Load, one: &Contender) -> Result<Sample> {
        self.puts.set(self.puts.get() + 1);
        let (keys, body) = (self.keys(load), body());
        if let (true, Some(store)) = (*one.variant == STORE, &self.store) {
            let threads = (self.options.connections, self.servers.cores);
            return objects::put(store, &keys, &body, threads);
        }
        let server = one.server()?;
        let requests = self.requests(one.variant, server);
        let put = |key: &String| requests.put(&format!("/{BUCKET}/{key}"), &body);
        let site = Site::of_requests(keys.iter().map(put), 0);
        let mut client = self.client(&site, server)?;
        client.compare_all = true;
        client.fetch_once(&(0..keys.len()), server.meter)
    }

    /// Returns the keys of the PUT measurement that runs now.
    fn keys(&self, load: Load) -> Vec<String> {
        let (measurement, count) = (self.puts.get(), self.options.puts);
        let key = |number| match load {
            Load::PutOverwrite => format!("overwritten/{:06}", number % OVERWRITTEN),
            _ => format!("new/{measurement:06}/{number:06}"),
        };
        (0..count).map(key).collect()
    }

    /// Reads the objects that were stored last, and compares their bytes.
    fn verify(&self, load: Load, one: &Contender) -> Result<()> {
        let keys = self.keys(load);
        if *one.variant == STORE {
            return Ok(());
        }
        let server = one.server()?;
        let get = |key: &String| self.get(one.variant, server, key);
        let site = Site::of_requests(keys.iter().map(get), PUT_BYTES as u64);
        self.compare(&site, &(0..keys.len().min(OVERWRITTEN)), server)
    }

    /// Fetches each page once, and compares all bytes.
    fn compare(&self, site: &Site, pages: &Pages, server: &Server) -> Result<()> {
        let mut client = self.client(site, server)?;
        client.compare_all = true;
        client.fetch_once(pages, server.meter).map(drop)
    }

    fn client<'a>(&'a self, site: &'a Site, server: &Server) -> Result<Client<'a>> {
        Client::new(site, self.watcher, server.address, self.options.connections, None)
    }

    fn pages(&self, bytes: u64) -> Pages {
        let found = self.sizes.iter().find(|one| one.0 == bytes);
        found.map(|one| one.1.clone()).unwrap_or_default()
    }

    /// Returns a GET request for an object, or for the file of the same name.
    fn get(&self, variant: &Variant, server: &Server, name: &str) -> Vec<u8> {
        let is_store = [&SERVE, &SIGNED].contains(&variant);
        let path = if is_store { format!("/{BUCKET}/{name}") } else { format!("/{name}") };
        self.requests(variant, server).get(&path)
    }

    fn requests(&self, variant: &Variant, server: &Server) -> Requests {
        match *variant == SIGNED {
            true => Requests::signed(server.address, SignatureKind::Header, SystemTime::now()),
            false => Requests::anonymous(server.address),
        }
    }
}

/// Returns the bytes of each object that is stored by a PUT request.
fn body() -> Vec<u8> {
    let mut body = vec![0; PUT_BYTES];
    Content(0).fill(0, &mut body);
    body
}
