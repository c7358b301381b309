//! What a thread that serves has, beside its connections.

use std::sync::atomic::{AtomicU64, Ordering};

use haul_http1::HeadLimits;
use haul_reactor::Context;

use crate::answer::Manner;
use crate::connection::{Connection, Message};
use crate::pipeline::Pipeline;
use crate::shared::{Clock, Desk};

/// What is read of a socket at once.
const BUFFER_BYTES: usize = 32 << 10;

/// One thread that serves.
pub(crate) struct Worker {
    pub(crate) desk: Desk,
    pub(crate) clock: Clock,
    pub(crate) head_limits: HeadLimits,
    /// For what is received, and understood at once.
    pub(crate) buffer: Vec<u8>,
    /// Responses to pipelined requests that are not sent yet; empty between events.
    pub(crate) pipeline: Pipeline,
    /// For paths that were escaped.
    pub(crate) space: Vec<u8>,
    /// For a line of the log.
    pub(crate) line: Vec<u8>,
    boundaries: AtomicU64,
}

impl Worker {
    /// `seed` is random: nobody may guess what parts the parts of an answer.
    pub(crate) fn new(desk: Desk, seed: u64) -> Self {
        Self {
            desk,
            clock: Clock::new(),
            head_limits: HeadLimits::default(),
            buffer: vec![0; BUFFER_BYTES],
            pipeline: Pipeline::default(),
            space: Vec::new(),
            line: Vec::new(),
            boundaries: AtomicU64::new(seed),
        }
    }

    /// Parts one part of an answer from the next: 64 bits that are in no file.
    pub(crate) fn boundary(&self) -> String {
        let number = self.boundaries.fetch_add(1, Ordering::Relaxed);
        format!("haul-{:016x}", crate::meta::mixed(number))
    }

    pub(crate) fn manner(&self, connection: &Connection, is_head: bool) -> Manner<'_> {
        Manner {
            date: &self.clock.date,
            closes: connection.closes,
            tells_keep_alive: connection.is_old,
            is_head,
        }
    }

    pub(crate) fn ms(&self, hub: &Context<'_, Message>) -> u64 {
        self.desk.shared.ms(hub.now())
    }
}
