//! Holds a running machine's state: the medium, the page cache, and the recorded steps.

use haul_disk::PAGE_BYTES;

use crate::memory::content::Content;
use crate::memory::medium::{Medium, apply_bytes};
use crate::memory::step::{Names, Node, Step};
use crate::memory::survival::Survival;

/// The medium, and what the machine keeps in memory.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) medium: Medium,
    /// The names that programs see, durable or pending.
    pub(crate) names: Names,
    /// The page cache: the contents that programs see, including data whose sync failed.
    pub(crate) files: Vec<Content>,
    pub(crate) steps: Vec<Step>,
    pub(crate) bytes_max: Option<u64>,
    pub(crate) failed_sync_survival: Survival,
}

impl State {
    /// Returns the state after a machine was started on a medium.
    pub(crate) fn on(medium: &Medium) -> Self {
        let (names, files) = medium.visible();
        Self {
            medium: medium.clone(),
            names,
            files,
            steps: Vec::new(),
            bytes_max: None,
            failed_sync_survival: Survival::Nothing,
        }
    }

    pub(crate) fn record(&mut self, step: Step) {
        self.medium.apply_step(&step);
        self.steps.push(step);
    }

    /// Applies a step to a file's content in the page cache, and records it.
    pub(crate) fn change(&mut self, file: usize, step: Step) {
        apply_bytes(&mut self.files[file], &step);
        self.record(step);
    }

    pub(crate) fn fail_sync(&mut self, file: usize) {
        let survival = self.failed_sync_survival;
        self.record(Step::FailedSync { file, survival });
    }

    pub(crate) fn used_bytes(&self) -> u64 {
        let pages = self.names.values().map(|node| match node {
            Node::File(file) => self.files[*file].pages(),
            Node::Dir => 1,
        });
        pages.sum::<u64>() * PAGE_BYTES as u64
    }

    pub(crate) fn is_full_for(&self, more_pages: u64) -> bool {
        more_pages > 0
            && self.bytes_max.is_some_and(|bytes_max| {
                self.used_bytes() + more_pages * PAGE_BYTES as u64 > bytes_max
            })
    }
}
