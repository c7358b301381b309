//! Round after round: what may still be equal is read a piece further, and told apart by it.

use std::collections::HashMap;
use std::ops::Range;

use haul_bulk_read::digest::{HashKind, Hasher};
use haul_bulk_read::{Cache as PageCache, ReadOptions, Tree, Want};
use parking_lot::Mutex;

use super::cache::Cache;
use super::candidates::Candidates;
use super::counting::Counting;
use super::found::Groups;
use super::keys::{Key, Keys, key_bytes, key_of};
use super::plan::{Plan, Step};
use super::reading::Reading;
use super::reflinks::Reflinks;
use super::{Events, Options, Phase};

/// How many contents are read in one go: what is kept for each of them adds up.
const BATCH: usize = 1 << 18;

/// A search under way. A content is named by its number among the candidates; a class is a range
/// of `order`, and holds what is equal as far as anybody looked.
pub(super) struct Rounds<'a> {
    tree: &'a Tree,
    candidates: &'a Candidates,
    options: &'a Options<'a>,
    counting: Counting,
    events: &'a dyn Events,
    order: Vec<u32>,
    reflinks: Reflinks,
    /// Hashers of what was read in part.
    carried: HashMap<u32, Hasher>,
    groups: Groups,
}

/// A class that is read further.
struct Class {
    range: Range<usize>,
    step: Step,
    is_last: bool,
    /// Where its digests are: those of one content together.
    places: usize,
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
        options: &'a Options<'a>,
        counting: Counting,
        events: &'a dyn Events,
    ) -> Self {
        Self {
            tree,
            candidates,
            options,
            counting,
            events,
            order: (0..candidates.len()).collect(),
            reflinks: Reflinks::default(),
            carried: HashMap::new(),
            groups: Groups::new(options.hash.bytes()),
        }
    }

    pub(super) fn run(mut self, plan: Plan, mut cache: Option<&mut Cache>) -> Groups {
        let mut live = self.classes_of_one_length();
        let mut round = 0;
        while !live.is_empty() {
            let mut next = Vec::new();
            for batch in batches(&live) {
                let (waiting, batch): (Vec<_>, Vec<_>) = batch
                    .iter()
                    .cloned()
                    .partition(|range| self.sits_out(range, &plan, round, cache.as_deref()));
                next.extend(waiting);
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

    /// The classes to begin with. What is alone in its length, or empty, is known already.
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
                live.extend(self.alone(range));
            }
        }
        live
    }

    /// Reports a content that has become unlike all others, where such are looked for.
    fn alone(&mut self, range: Range<usize>) -> Option<Range<usize>> {
        if !self.counting.wants_few() || self.contents(range.clone()).nth(1).is_some() {
            return Some(range);
        }
        self.report(range, None);
        None
    }

    /// What is read of a class in this round.
    fn class(
        &mut self,
        range: Range<usize>,
        plan: &Plan,
        round: u32,
        cache: Option<&Cache>,
    ) -> Class {
        let bytes = self.candidates.bytes(self.order[range.start]);
        // There is a step: a class whose last one was read is reported.
        let mut step = plan.step(bytes, round).unwrap_or(Step::Whole);
        let mut is_last = plan.step(bytes, round + 1).is_none();
        let mut range = range;
        if let Step::Part(from, ..) = step {
            let order = &mut self.order[range.clone()];
            if from == 0 {
                range.end = range.start + self.reflinks.gather(order, self.tree, self.candidates);
            }
            let is_known = |content: &u32| self.full(cache, *content).is_some();
            if self.order[range.clone()].iter().any(is_known) {
                // Digests of parts are not kept, so the others are read to the end.
                (step, is_last) = (Step::Part(from, bytes - from, true), true);
            }
        }
        Class { range, step, is_last, places: 0 }
    }

    fn full(&self, cache: Option<&Cache>, content: u32) -> Option<Key> {
        cache?.full(&self.tree.meta(self.candidates.file(content)))
    }

    fn sample(&self, cache: Option<&Cache>, content: u32) -> Option<Key> {
        cache?.sample(&self.tree.meta(self.candidates.file(content)))
    }

    /// Whether a class has nothing to do with this round: of a content that is known from before
    /// only the last digest of samples is.
    fn sits_out(
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

    /// Reads a round, and gives the classes that are left.
    fn read(
        &mut self,
        mut classes: Vec<Class>,
        plan: &Plan,
        round: u32,
        mut cache: Option<&mut Cache>,
    ) -> Vec<Range<usize>> {
        let mut count = 0;
        for class in &mut classes {
            class.places = count;
            count += class.range.len() * class.pieces();
        }
        // Samples only tell apart: a hash for that, and the chosen one for what is reported.
        let (sampled, whole): (Vec<_>, Vec<_>) = classes.into_iter().partition(Class::is_sampled);
        let mut next = Vec::new();
        for (classes, hash) in [(sampled, HashKind::Xxh3), (whole, self.options.hash)] {
            if !classes.is_empty() {
                let keys = Keys::new(count, hash.bytes());
                self.fill(&classes, &keys, hash, round, cache.as_deref());
                for class in classes {
                    self.split(&class, &keys, plan, round, cache.as_deref_mut(), &mut next);
                }
            }
        }
        next
    }

    /// Gets the digests of all pieces, from the cache or by reading.
    fn fill(
        &mut self,
        classes: &[Class],
        keys: &Keys,
        hash: HashKind,
        round: u32,
        cache: Option<&Cache>,
    ) {
        let (mut wants, mut places) = (Vec::new(), Vec::new());
        let mut carried: Vec<Mutex<Option<Hasher>>> = Vec::new();
        let mut carriers = Vec::new();
        for class in classes {
            for (index, content) in self.order[class.range.clone()].iter().copied().enumerate() {
                let place = class.places + index * class.pieces();
                let file = self.candidates.file(content);
                if !class.is_sampled()
                    && let Some(key) = self.full(cache, content)
                {
                    keys.set_key(place, &key);
                    continue;
                }
                if class.is_sampled() && self.sample(cache, content).is_some() {
                    continue;
                }
                let mut want = |offset, bytes, place| {
                    wants.push(Want { file, offset, bytes });
                    places.push(place);
                };
                match &class.step {
                    Step::Whole => want(0, u64::MAX, place),
                    Step::Part(offset, bytes, _) => {
                        want(*offset, *bytes, place);
                        carried.resize_with(wants.len() - 1, Mutex::default);
                        carried.push(Mutex::new(self.carried.remove(&content)));
                        carriers.push((wants.len() - 1, content));
                    }
                    Step::Samples(samples) => {
                        for (number, (offset, bytes)) in samples.iter().enumerate() {
                            want(*offset, *bytes, place + number);
                        }
                    }
                }
            }
        }
        if wants.is_empty() {
            return;
        }
        let phase = if round == 0 { Phase::Sampling } else { Phase::Reading };
        let bytes = |want: &Want| want.bytes.min(self.tree.meta(want.file).bytes);
        self.events.phase(phase, wants.len() as u64, wants.iter().map(bytes).sum());
        let (tree, events) = (self.tree, self.events);
        let (wants, places, carry) = (&wants[..], &places[..], &carried[..]);
        let reading = Reading { tree, wants, places, carried: carry, keys, hash, events };
        let read = &self.options.read;
        let cache = if round > 0 && self.options.spare_big { PageCache::Spare } else { read.cache };
        let options = ReadOptions { cache, ..read.clone() };
        haul_bulk_read::read(tree, wants, &options, &reading);
        for (want, content) in carriers {
            if let Some(hasher) = carried[want].lock().take() {
                self.carried.insert(content, hasher);
            }
        }
    }

    /// Tells the contents of a class apart; reports what is over, and adds the rest to `next`.
    fn split(
        &mut self,
        class: &Class,
        keys: &Keys,
        plan: &Plan,
        round: u32,
        cache: Option<&mut Cache>,
        next: &mut Vec<Range<usize>>,
    ) {
        let pieces = class.pieces();
        let bytes = self.candidates.bytes(self.order[class.range.start]);
        let mut known: Vec<(Key, u32)> = Vec::with_capacity(class.range.len());
        for (index, content) in self.order[class.range.clone()].iter().enumerate() {
            let place = class.places + index * pieces;
            let sample = self.sample(cache.as_deref(), *content).filter(|_| class.is_sampled());
            let key = sample.or_else(|| combined(keys, place, pieces));
            known.extend(key.map(|key| (key, *content)));
        }
        if let Some(cache) = cache {
            let is_sample = plan.is_last_sample(bytes, round);
            for (key, content) in &known {
                if class.is_sampled() && is_sample {
                    cache.add_sample(*content, key);
                } else if class.is_last && !class.is_sampled() {
                    cache.add_full(*content, key);
                }
            }
        }
        known.sort_unstable();
        let mut start = class.range.start;
        for run in known.chunk_by(|a, b| a.0 == b.0) {
            let range = start..start + run.len();
            start += run.len();
            for (place, (_, content)) in self.order[range.clone()].iter_mut().zip(run) {
                *place = *content;
            }
            if class.is_last {
                let digest = key_bytes(&run[0].0);
                let length = if class.is_sampled() { 16 } else { self.options.hash.bytes() };
                self.report(range.clone(), Some(&digest[..length]));
            } else if self.counting.is_more(self.replicas(range.clone())) {
                next.extend(self.alone(range));
                continue;
            }
            for (_, content) in run {
                self.carried.remove(content);
            }
        }
    }

    /// The contents of a class, with those that are known to be equal to one of them.
    fn contents(&self, range: Range<usize>) -> impl Iterator<Item = u32> {
        let order = self.order[range].iter().copied();
        order.flat_map(|content| std::iter::once(content).chain(self.reflinks.of(content)))
    }

    fn replicas(&self, range: Range<usize>) -> usize {
        let mut replicas = self.counting.replicas();
        for content in self.contents(range) {
            for (number, name) in self.candidates.names(content).iter().enumerate() {
                replicas.add(self.tree.root(name.file), number > 0);
            }
        }
        replicas.count()
    }

    fn report(&mut self, range: Range<usize>, digest: Option<&[u8]>) {
        if !self.counting.reports(self.replicas(range.clone())) {
            return;
        }
        let bytes = self.candidates.bytes(self.order[range.start]);
        let names = |content| self.candidates.names(content).iter().map(|name| name.file);
        let members: Vec<_> = self.contents(range).flat_map(names).collect();
        self.groups.add(bytes, digest, members);
    }
}

/// The digest of one piece, or of the digests of several.
fn combined(keys: &Keys, place: usize, pieces: usize) -> Option<Key> {
    if pieces == 1 {
        return keys.get(place);
    }
    let mut hasher = HashKind::Xxh3.hasher();
    for piece in place..place + pieces {
        hasher.update(&key_bytes(&keys.get(piece)?));
    }
    Some(key_of(hasher.finish().as_bytes()))
}

/// Classes in portions of not too many contents.
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
