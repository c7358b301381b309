//! What goes through a relay. Pure.

use crate::net::contest::short;

/// A kind of traffic, which is a row for each relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Traffic {
    /// As many bytes as possible in one direction.
    Bulk { flows: usize },
    /// A message there and one back, again and again.
    Messages { bytes: u64 },
    /// Many who say little.
    Chat,
    /// A file each for connections that are made for it.
    Files,
    /// A connection for each message there and back; without any bytes, for itself alone.
    Connections { bytes: u64 },
}

/// Questions and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exchange {
    /// How many at a time.
    pub(super) connections: usize,
    pub(super) ask_bytes: u64,
    pub(super) answer_bytes: u64,
    /// Whether a connection is kept for the next question.
    pub(super) kept: bool,
}

/// Questions this short are always read, longer ones as often as they are compared.
pub(super) const READ_MAX: u64 = 4096;

const CHAT: Exchange = Exchange { connections: 64, ask_bytes: 16, answer_bytes: 16, kept: true };
const FILES: Exchange =
    Exchange { connections: 4, ask_bytes: 64, answer_bytes: 8 << 20, kept: false };

impl Traffic {
    /// For people.
    pub(super) fn name(self) -> String {
        match self {
            Self::Bulk { flows: 1 } => "1 flow".to_owned(),
            Self::Bulk { flows } => format!("{flows} flows"),
            Self::Messages { bytes } => format!("{bytes} B there and back"),
            Self::Chat => "chat: 16 B, 64 connections".to_owned(),
            Self::Files => "files: 8 MiB, a connection each".to_owned(),
            Self::Connections { bytes: 0 } => "connection only".to_owned(),
            Self::Connections { bytes } => format!("connection, {bytes} B there and back"),
        }
    }

    /// For names of ratios.
    pub(super) fn key(self) -> String {
        match self {
            Self::Bulk { flows } => format!("bulk_{flows}"),
            Self::Messages { bytes } => format!("message_{}", short(bytes)),
            Self::Chat => "chat".to_owned(),
            Self::Files => "files".to_owned(),
            Self::Connections { bytes } => format!("connection_{}", short(bytes)),
        }
    }

    pub(super) fn table(self) -> &'static str {
        match self {
            Self::Bulk { .. } => "bulk",
            Self::Messages { .. } | Self::Chat | Self::Files => "messages",
            Self::Connections { .. } => "connections",
        }
    }

    /// What is asked and answered; `None` for bulk.
    pub(super) fn exchange(self) -> Option<Exchange> {
        let same = |connections, bytes, kept| Exchange {
            connections,
            ask_bytes: bytes,
            answer_bytes: bytes,
            kept,
        };
        match self {
            Self::Bulk { .. } => None,
            Self::Messages { bytes } => Some(same(8, bytes, true)),
            Self::Chat => Some(CHAT),
            Self::Files => Some(FILES),
            Self::Connections { bytes } => Some(same(8, bytes, false)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_has_a_name_for_people_and_one_for_ratios() {
        assert_eq!(Traffic::Messages { bytes: 4096 }.key(), "message_4k");
        assert_eq!(Traffic::Bulk { flows: 16 }.name(), "16 flows");
    }

    #[test]
    fn a_question_for_which_a_connection_is_made_is_short_enough_to_be_read() {
        for traffic in [Traffic::Files, Traffic::Connections { bytes: 1024 }, Traffic::Chat] {
            let exchange = traffic.exchange().unwrap();
            assert!(exchange.kept || exchange.ask_bytes <= READ_MAX, "{traffic:?}");
        }
    }
}
