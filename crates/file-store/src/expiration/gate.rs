//! A gate before the thread that sweeps buckets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Keeps lifecycle rules from being applied, as long as they may be wrong: a store that was restored
/// from an older copy has rules that were changed since.
///
/// The default gate is open, and stays so.
#[derive(Debug, Clone, Default)]
pub struct LifecycleGate(Option<Arc<AtomicBool>>);

impl LifecycleGate {
    /// Creates a gate that is closed. Its clones open with it.
    #[must_use]
    pub fn closed() -> Self {
        Self(Some(Arc::new(AtomicBool::new(false))))
    }

    /// Opens the gate for ever.
    pub fn open(&self) {
        if let Some(is_open) = &self.0 {
            is_open.store(true, Relaxed);
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.as_ref().is_none_or(|is_open| is_open.load(Relaxed))
    }
}
