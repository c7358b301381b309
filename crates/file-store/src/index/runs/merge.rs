//! Merges several sorted sources; newer entries replace older ones.

use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::index::runs::source::Source;

/// The treatment of tombstones in a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deletions {
    /// Tombstones are part of the result, because sources older than the merged ones may have the
    /// keys.
    Deliver,
    /// Tombstones hide older entries and are not part of the result.
    Drop,
}

/// Merges several sources, and is itself a source. If several entries have the same key, only the
/// newest is delivered.
///
/// # Source
/// \[Knuth98\], section 5.4.1: a tree of losers. Advancing compares one key per level of the tree.
#[derive(Debug)]
pub(crate) struct Merged<S> {
    /// From newest to oldest.
    sources: Vec<S>,
    /// For each inner node of a binary tree over the sources, the source that lost the comparison
    /// at this node. Item 0 is the source that won all its comparisons.
    tree: Vec<usize>,
    deletions: Deletions,
    state: State,
    /// The key past which all sources are advanced.
    passed: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    BeforeFirst,
    Positioned,
    Failed,
}

impl<S: Source> Merged<S> {
    /// Creates a merge of unpositioned sources, from newest to oldest.
    pub(crate) fn new(sources: Vec<S>, deletions: Deletions) -> Self {
        let tree = vec![0; sources.len()];
        Self { sources, tree, deletions, state: State::BeforeFirst, passed: Vec::new() }
    }

    /// Returns the current entry; its value is `None` for a tombstone.
    pub(crate) fn current(&self) -> Option<(&[u8], Option<&[u8]>)> {
        let winner = self.winner()?;
        Some((winner.key()?, winner.value()))
    }

    fn winner(&self) -> Option<&S> {
        let is_positioned = self.state == State::Positioned;
        is_positioned.then(|| self.tree.first().map(|winner| &self.sources[*winner]))?
    }

    /// Positions all sources with `position` and moves to the first entry of the result.
    fn reposition(&mut self, mut position: impl FnMut(&mut S) -> Result<()>) -> Result<()> {
        self.state = State::Failed;
        for source in &mut self.sources {
            position(source)?;
        }
        if !self.sources.is_empty() {
            self.tree[0] = self.build(1);
        }
        self.skip_dropped()?;
        self.state = State::Positioned;
        Ok(())
    }

    /// Builds the tree below a node and returns the node's winner.
    fn build(&mut self, node: usize) -> usize {
        if node >= self.sources.len() {
            return node - self.sources.len();
        }
        let (left, right) = (self.build(2 * node), self.build(2 * node + 1));
        let (winner, loser) =
            if self.is_before(left, right) { (left, right) } else { (right, left) };
        self.tree[node] = loser;
        winner
    }

    /// Returns `true` if the current entry of source `one` comes before the current entry of source
    /// `other`.
    #[inline]
    fn is_before(&self, one: usize, other: usize) -> bool {
        match (self.sources[one].key(), self.sources[other].key()) {
            (Some(key), Some(other_key)) => match key.cmp(other_key) {
                Ordering::Less => true,
                Ordering::Equal => one < other,
                Ordering::Greater => false,
            },
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => one < other,
        }
    }

    /// Advances the winner and repeats its comparisons.
    #[inline]
    fn advance_winner(&mut self) -> Result<()> {
        let mut winner = self.tree[0];
        self.sources[winner].advance()?;
        // A source's leaf has the source's number plus the number of inner nodes.
        let mut node = (winner + self.sources.len()) >> 1;
        while node > 0 {
            let loser = self.tree[node];
            if self.is_before(loser, winner) {
                self.tree[node] = winner;
                winner = loser;
            }
            node >>= 1;
        }
        self.tree[0] = winner;
        Ok(())
    }

    /// Advances all sources past the current key.
    #[inline]
    fn pass_key(&mut self) -> Result<()> {
        let Some(key) = self.tree.first().and_then(|winner| self.sources[*winner].key()) else {
            return Ok(());
        };
        self.passed.clear();
        self.passed.extend_from_slice(key);
        loop {
            self.advance_winner()?;
            if self.sources[self.tree[0]].key() != Some(&self.passed) {
                return Ok(());
            }
        }
    }

    /// Skips tombstones that are not part of the result.
    #[inline]
    fn skip_dropped(&mut self) -> Result<()> {
        while self.deletions == Deletions::Drop {
            let Some(winner) = self.tree.first().map(|winner| &self.sources[*winner]) else {
                break;
            };
            if winner.key().is_none() || winner.value().is_some() {
                break;
            }
            self.pass_key()?;
        }
        Ok(())
    }
}

impl<S: Source> Source for Merged<S> {
    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.reposition(|source| source.seek(key))
    }

    fn advance(&mut self) -> Result<()> {
        match self.state {
            State::BeforeFirst => return self.reposition(Source::advance),
            State::Failed => {
                let what = "a failed merge must be repositioned by a seek".to_owned();
                return Err(Error::Invalid { what });
            }
            State::Positioned => {}
        }
        self.state = State::Failed;
        self.pass_key()?;
        self.skip_dropped()?;
        self.state = State::Positioned;
        Ok(())
    }

    fn key(&self) -> Option<&[u8]> {
        self.winner()?.key()
    }

    fn value(&self) -> Option<&[u8]> {
        self.winner()?.value()
    }
}
