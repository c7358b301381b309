//! Defines the options of `haul bench relay`, the workloads that they select, and the note of the
//! report that explains the rows.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use haul_units::parse_time;

use super::bulk::FLOWS_MAX;
use super::workload::Load;
use crate::named::named;
use crate::options::{count, rounds, size};

/// Options of `haul bench relay`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory for configurations and logs of the relays, removed at the end
    #[arg(long, value_name = "DIR", default_value = "/tmp")]
    pub dir: PathBuf,
    /// Parts to measure: bulk, messages, connections, pipes
    ///
    /// bulk: CPU time per GB in one direction. messages: CPU time, rate and latency of messages in
    /// both directions, of a chat with many connections, and of one file per connection.
    /// connections: short connections that transfer nothing or 1 KiB. pipes: pipes created per
    /// connection, counted by strace, and descriptors of an idle connection.
    #[arg(long = "only", value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "bulk,messages,connections,pipes")]
    pub parts: Vec<Part>,
    /// Rivals to measure: haproxy, nginx, go, socat, tokio [default: all installed]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(value_parser = PossibleValuesParser::new(RIVALS), hide_possible_values = true)]
    pub rivals: Option<Vec<String>>,
    /// Path of haul-bench-compare, the program that contains the relay with tokio
    ///
    /// By default it is searched for beside haul-bench and in PATH.
    #[arg(long, value_name = "PROGRAM")]
    pub compare: Option<PathBuf>,
    /// Numbers of connections in the part bulk; each is measured separately
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,16")]
    #[arg(value_parser = count(1..=FLOWS_MAX))]
    pub flows: Vec<usize>,
    /// Message lengths in the part messages, 8 B to 1GiB
    #[arg(long = "sizes", value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "64,1KiB,4KiB,16KiB,64KiB,256KiB,1MiB", value_parser = message_size)]
    pub message_bytes: Vec<u64>,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
    /// Duration of one measurement, such as 500ms
    #[arg(long = "seconds", value_name = "TIME", default_value = "400ms")]
    #[arg(value_parser = parse_time)]
    pub time: Duration,
    /// TCP congestion control during the benchmark, such as cubic; needs root
    ///
    /// This is a setting of the machine: it applies to all connections that any program opens
    /// during the benchmark. The previous setting is restored however the benchmark ends.
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// Path of the program haul to measure [default: beside haul-bench or in PATH]
    #[arg(long, value_name = "PROGRAM")]
    pub program: Option<PathBuf>,
    /// The directories to search for rivals, in the format of `PATH`.
    #[arg(skip)]
    pub path: OsString,
}

named! {
    /// A part of the benchmark.
    pub enum Part {
        /// As many bytes as possible, in one direction.
        Bulk = "bulk",
        /// Messages of many sizes in both directions, a chat, and files.
        Messages = "messages",
        /// Connections for one short exchange, or none.
        Connections = "connections",
        /// The number of pipes and descriptors per connection.
        Pipes = "pipes",
    }
}

/// The names that select rivals.
pub(super) const RIVALS: [&str; 5] = ["haproxy", "nginx", "go", "socat", "tokio"];

fn message_size(text: &str) -> Result<u64, String> {
    size(text, 8..=1 << 30, "a size from 8 B to 1GiB")
}

impl Options {
    /// Returns the workloads in the order of the rows.
    pub(super) fn workloads(&self) -> Vec<Load> {
        let wanted = |part: Part| self.parts.contains(&part);
        let bulk = self.flows.iter().map(|flows| Load::Bulk { flows: *flows });
        let messages = self.message_bytes.iter().map(|bytes| Load::Messages { bytes: *bytes });
        let messages = messages.chain([Load::Chat, Load::Files]);
        let connections = [0, 1 << 10].map(|bytes| Load::Connections { bytes });
        bulk.filter(|_| wanted(Part::Bulk))
            .chain(messages.filter(|_| wanted(Part::Messages)))
            .chain(connections.into_iter().filter(|_| wanted(Part::Connections)))
            .collect()
    }

    /// Returns a note that explains the rows.
    pub(super) fn note(&self) -> String {
        format!(
            "{} interleaved rounds of {} ms; numbers are medians, ratios are medians of the ratios \
             of pairs of one round. One core for the relay, one for clients and backend, on \
             loopback. CPU time is that of the relay's processes, core time that of everything on \
             its core. bulk: as fast as possible, in one direction. messages: 8 persistent \
             connections; each sends again when it has its answer. connections: 8 at a time. GB \
             are 10^9 bytes, in both directions. pipes: per connection of 1 MiB, after as many \
             before; descriptors: per idle connection after such a transfer. \"again\" is the \
             first relay once more.",
            self.rounds,
            self.time.as_millis(),
        )
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn parts_select_workloads() {
        for part in Part::ALL {
            assert_eq!(part.name().parse(), Ok(part));
        }
        assert!("all".parse::<Part>().unwrap_err().contains("pipes"));
        let count = |parts: &str| Options::parse_from(["relay", "--only", parts]).workloads().len();
        assert_eq!(Part::ALL.map(|part| count(part.name())), [2, 9, 2, 0]);
        assert_eq!(Options::parse_from(["relay"]).workloads().len(), 13);
    }
}
