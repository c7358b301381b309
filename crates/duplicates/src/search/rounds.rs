//! Finds equal files by partition refinement. A class is a set of files that are equal in all
//! pieces read so far. Each round reads another piece of these files, and splits the classes by the
//! digests of that piece.

use std::collections::HashMap;
use std::ops::Range;

use haul_bulk_read::digest::HashKind;
use haul_bulk_read::{CacheMode, ReadOptions, ReadRequest, Tree};
use parking_lot::Mutex;

use super::cache::Cache;
use super::candidates::Candidates;
use super::consumer::HashConsumer;
use super::content_hash::ContentHasher;
use super::digests::{DigestTable, Key, key_bytes, key_of};
use super::events::{Events, Phase};
use super::options::Options;
use super::plan::{Plan, Step};
use super::reflinks::Reflinks;
use super::replication::ReplicaPolicy;
use super::result::Groups;
use crate::file_systems::FileSystems;

/// The approximate number of contents read in one batch, which bounds the memory for digests.
const BATCH: usize = 1 << 18;

/// A running search. A content (an inode) is identified by its index among the candidates. A class
/// is a range of `order`.
pub(super) struct Rounds<'a> {
    tree: &'a Tree,
    candidates: &'a Candidates,
    options: &'a Options<'a>,
    policy: ReplicaPolicy,
    events: &'a dyn Events,
    order: Vec<u32>,
    reflinks: Reflinks<'a>,
    /// The hashers of the contents that are read in parts and not yet read to the end.
    hashers: HashMap<u32, ContentHasher>,
    groups: Groups,
}

/// A class, and the pieces to read of each of its contents in this round.
struct Class {
    range: Range<usize>,
    step: Step,
    is_last: bool,
    /// The first slot of the digests of this class; the slots of one content are adjacent.
    slot: usize,
}

impl Class {
    fn pieces(&self) -> usize {
        match &self.step {
            Step::Samples(samples) => samples.len(),
            _ => 1,
        }
    }

    fn is_sampled(&self) -> bool {
        matches!(self.step, Step::Samples(_))
    }
}

impl<'a> Rounds<'a> {
    pub(super) fn new(
        tree: &'a Tree,
        candidates: &'a Candidates,
        file_systems: &'a FileSystems,
        options: &'a Options<'a>,
        policy: ReplicaPolicy,
        events: &'a dyn Events,
    ) -> Self {
        Self {
            tree,
            candidates,
            options,
            policy,
            events,
            order: (0..candidates.len()).collect(),
            reflinks: Reflinks::new(file_systems),
            hashers: HashMap::new(),
            groups: Groups::new(options.hash.bytes()),
        }
    }

    pub(super) fn run(mut self, plan: Plan, mut cache: Option<&mut Cache>) -> Groups {
        let mut live = self.classes_of_one_length();
        let mut round = 0;
        while !live.is_empty() {
            let mut next = Vec::new();
            for batch in batches(&live) {
                let (skipping, batch): (Vec<_>, Vec<_>) = batch
                    .iter()
                    .cloned()
                    .partition(|range| self.skips_round(range, &plan, round, cache.as_deref()));
                next.extend(skipping);
                let classes = batch
                    .into_iter()
                    .map(|range| self.class(range, &plan, round, cache.as_deref()))
                    .collect();
                next.extend(self.read(classes, &plan, round, cache.as_deref_mut()));
            }
            live = next;
            round += 1;
        }
        self.groups
    }

    /// Returns the initial classes, one per length. Empty files are reported without reading them,
    /// as are files of a unique length if the search is for few replicas.
    fn classes_of_one_length(&mut self) -> Vec<Range<usize>> {
        let (mut live, mut start) = (Vec::new(), 0);
        while start < self.order.len() {
            let bytes = self.candidates.bytes(self.order[start]);
            let rest = &self.order[start..];
            let length = rest.iter().take_while(|c| self.candidates.bytes(**c) == bytes).count();
            let range = start..start + length;
            start += length;
            if bytes == 0 {
                let digest = self.options.hash.of(&[]);
                self.report(range, Some(digest.as_bytes()));
            } else {
                live.extend(self.report_unique(range));
            }
        }
        live
    }

    /// Reports a class that has only one content if the search is for few replicas; otherwise
    /// returns the class.
    fn report_unique(&mut self, range: Range<usize>) -> Option<Range<usize>> {
        if !self.policy.reports_few() || self.contents(range.clone()).nth(1).is_some() {
            return Some(range);
        }
        self.report(range, None);
        None
    }

    /// Determines the pieces to read of each content of a class in this round.
    fn class(
        &mut self,
        range: Range<usize>,
        plan: &Plan,
        round: u32,
        cache: Option<&Cache>,
    ) -> Class {
        let bytes = self.candidates.bytes(self.order[range.start]);
        // The step is never `None`, because a class is reported after its last step.
        let mut step = plan.step(bytes, round).unwrap_or(Step::Whole);
        let mut is_last = plan.step(bytes, round + 1).is_none();
        let mut range = range;
        if let Step::Part(from, ..) = step {
            let order = &mut self.order[range.clone()];
            if from == 0 {
                range.end =
                    range.start + self.reflinks.deduplicate(order, self.tree, self.candidates);
            }
            let is_cached = |content: &u32| self.full(cache, *content).is_some();
            if self.order[range.clone()].iter().any(is_cached) {
                // The cache has digests of whole files, not of parts. To be compared with them, the
                // other files must be read to the end.
                (step, is_last) = (Step::Part(from, bytes - from, true), true);
            }
        }
        Class { range, step, is_last, slot: 0 }
    }

    fn full(&self, cache: Option<&Cache>, content: u32) -> Option<Key> {
        cache?.full(&self.tree.meta(self.candidates.file(content)))
    }

    fn sample(&self, cache: Option<&Cache>, content: u32) -> Option<Key> {
        cache?.sample(&self.tree.meta(self.candidates.file(content)))
    }

    /// `true` if the class skips this round of samples because the cache has a digest of the
    /// samples of a content. The cache has such digests only for the last round of samples, so the
    /// class waits for that round.
    fn skips_round(
        &self,
        range: &Range<usize>,
        plan: &Plan,
        round: u32,
        cache: Option<&Cache>,
    ) -> bool {
        let bytes = self.candidates.bytes(self.order[range.start]);
        matches!(plan.step(bytes, round), Some(Step::Samples(_)))
            && !plan.is_last_sample(bytes, round)
            && self.order[range.clone()].iter().any(|c| self.sample(cache, *c).is_some())
    }

    /// Reads the pieces of one round and returns the classes that need another round.
    fn read(
        &mut self,
        mut classes: Vec<Class>,
        plan: &Plan,
        round: u32,
        mut cache: Option<&mut Cache>,
    ) -> Vec<Range<usize>> {
        let mut count = 0;
        for class in &mut classes {
            class.slot = count;
            count += class.range.len() * class.pieces();
        }
        // Equal samples do not make files equal, so a fast hash suffices for them. Digests in
        // reports use the hash function chosen by the caller.
        let (sampled, whole): (Vec<_>, Vec<_>) = classes.into_iter().partition(Class::is_sampled);
        let mut next = Vec::new();
        for (classes, hash) in [(sampled, HashKind::Xxh3), (whole, self.options.hash)] {
            if !classes.is_empty() {
                let digests = DigestTable::new(count, hash.bytes());
                self.fill(&classes, &digests, hash, round, cache.as_deref_mut());
                for class in classes {
                    self.split(&class, &digests, plan, round, cache.as_deref_mut(), &mut next);
                }
            }
        }
        next
    }

    /// Fills the table: takes the digests of whole files from the cache if possible, and reads and
    /// hashes all other pieces.
    fn fill(
        &mut self,
        classes: &[Class],
        digests: &DigestTable,
        hash: HashKind,
        round: u32,
        mut cache: Option<&mut Cache>,
    ) {
        let (mut requests, mut slots) = (Vec::new(), Vec::new());
        let mut hashers: Vec<Mutex<Option<ContentHasher>>> = Vec::new();
        let mut continued = Vec::new();
        for class in classes {
            for (index, content) in self.order[class.range.clone()].iter().copied().enumerate() {
                let slot = class.slot + index * class.pieces();
                let file = self.candidates.file(content);
                if !class.is_sampled()
                    && let Some(key) = self.full(cache.as_deref(), content)
                {
                    digests.set_key(slot, &key);
                    continue;
                }
                if class.is_sampled() && self.sample(cache.as_deref(), content).is_some() {
                    continue;
                }
                if let Some(cache) = cache.as_deref_mut() {
                    cache.check_writers(content, self.tree, self.candidates);
                }
                let mut request = |offset, bytes, slot| {
                    requests.push(ReadRequest { file, offset, bytes });
                    slots.push(slot);
                };
                match &class.step {
                    Step::Whole => request(0, u64::MAX, slot),
                    Step::Part(offset, bytes, _) => {
                        request(*offset, *bytes, slot);
                        hashers.resize_with(requests.len() - 1, Mutex::default);
                        hashers.push(Mutex::new(self.hashers.remove(&content)));
                        continued.push((requests.len() - 1, content));
                    }
                    Step::Samples(samples) => {
                        for (number, (offset, bytes)) in samples.iter().enumerate() {
                            request(*offset, *bytes, slot + number);
                        }
                    }
                }
            }
        }
        if requests.is_empty() {
            return;
        }
        let phase = if round == 0 { Phase::Sampling } else { Phase::Reading };
        let bytes = |request: &ReadRequest| request.bytes.min(self.tree.meta(request.file).bytes);
        self.events.phase(phase, requests.len() as u64, requests.iter().map(bytes).sum());
        let (tree, events) = (self.tree, self.events);
        let (requests, slots, hashers) = (&requests[..], &slots[..], &hashers[..]);
        let consumer = HashConsumer { tree, requests, slots, hashers, digests, hash, events };
        let read = &self.options.read;
        let cache = if round > 0 && self.options.preserve_cache_for_large {
            CacheMode::Preserve
        } else {
            read.cache
        };
        let options = ReadOptions { cache, ..read.clone() };
        haul_bulk_read::read(tree, requests, &options, &consumer);
        for (request, content) in continued {
            if let Some(hasher) = hashers[request].lock().take() {
                self.hashers.insert(content, hasher);
            }
        }
    }

    /// Splits a class by digest. Reports the new classes if this was the last round; otherwise adds
    /// those that need further rounds to `next`.
    fn split(
        &mut self,
        class: &Class,
        digests: &DigestTable,
        plan: &Plan,
        round: u32,
        cache: Option<&mut Cache>,
        next: &mut Vec<Range<usize>>,
    ) {
        let pieces = class.pieces();
        let bytes = self.candidates.bytes(self.order[class.range.start]);
        let mut keyed: Vec<(Key, u32)> = Vec::with_capacity(class.range.len());
        for (index, content) in self.order[class.range.clone()].iter().enumerate() {
            let slot = class.slot + index * pieces;
            let sample = self.sample(cache.as_deref(), *content).filter(|_| class.is_sampled());
            let key = sample.or_else(|| combined(digests, slot, pieces));
            keyed.extend(key.map(|key| (key, *content)));
        }
        if let Some(cache) = cache {
            let is_sample = plan.is_last_sample(bytes, round);
            for (key, content) in &keyed {
                if class.is_sampled() && is_sample {
                    cache.add_sample(*content, self.candidates, key);
                } else if class.is_last && !class.is_sampled() {
                    cache.add_full(*content, self.candidates, key);
                }
            }
        }
        keyed.sort_unstable();
        let mut start = class.range.start;
        for run in keyed.chunk_by(|a, b| a.0 == b.0) {
            let range = start..start + run.len();
            start += run.len();
            for (entry, (_, content)) in self.order[range.clone()].iter_mut().zip(run) {
                *entry = *content;
            }
            if class.is_last {
                let digest = key_bytes(&run[0].0);
                let length = if class.is_sampled() { 16 } else { self.options.hash.bytes() };
                self.report(range.clone(), Some(&digest[..length]));
            } else if self.policy.may_report(self.replicas(range.clone())) {
                next.extend(self.report_unique(range));
                continue;
            }
            for (_, content) in run {
                self.hashers.remove(content);
            }
        }
    }

    /// Returns the contents of a class, including the reflinked copies that are not read.
    fn contents(&self, range: Range<usize>) -> impl Iterator<Item = u32> {
        let order = self.order[range].iter().copied();
        order.flat_map(|content| std::iter::once(content).chain(self.reflinks.of(content)))
    }

    fn replicas(&self, range: Range<usize>) -> usize {
        let mut replicas = self.policy.counter();
        for content in self.contents(range) {
            for (number, name) in self.candidates.names(content).iter().enumerate() {
                replicas.add(self.tree.root(name.file), number > 0);
            }
        }
        replicas.count()
    }

    fn report(&mut self, range: Range<usize>, digest: Option<&[u8]>) {
        if !self.policy.reports(self.replicas(range.clone())) {
            return;
        }
        let bytes = self.candidates.bytes(self.order[range.start]);
        let names = |content| self.candidates.names(content).iter().map(|name| name.file);
        let members: Vec<_> = self.contents(range).flat_map(names).collect();
        self.groups.add(bytes, digest, members);
    }
}

/// Returns the digest of a single piece, or a digest over the digests of several pieces.
fn combined(digests: &DigestTable, slot: usize, pieces: usize) -> Option<Key> {
    if pieces == 1 {
        return digests.get(slot);
    }
    let mut hasher = HashKind::Xxh3.hasher();
    for piece in slot..slot + pieces {
        hasher.update(&key_bytes(&digests.get(piece)?));
    }
    Some(key_of(hasher.finish().as_bytes()))
}

/// Divides the classes into batches of about [`BATCH`] contents.
fn batches(live: &[Range<usize>]) -> Vec<&[Range<usize>]> {
    let (mut batches, mut start, mut count) = (Vec::new(), 0, 0);
    for (index, range) in live.iter().enumerate() {
        count += range.len();
        if count >= BATCH {
            batches.push(&live[start..=index]);
            (start, count) = (index + 1, 0);
        }
    }
    batches.push(&live[start..]);
    batches
}
