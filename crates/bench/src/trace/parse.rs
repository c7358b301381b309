//! Parses the block events in the text of a kernel trace. Performs no I/O.
//!
//! A line has the form `<comm>-<pid> [<cpu>] <flags> <seconds>: <event>: <fields of the event>`;
//! the task name `<comm>` may contain spaces and dashes.

/// The block events of a trace.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    /// The events in the order of their time.
    pub(crate) events: Vec<Event>,
    /// The number of events the kernel dropped because its buffer was full.
    pub(crate) lost: u64,
    /// The identifier, as used in the trace, of the measuring thread, which wrote the marker: a
    /// known text that appears in the trace with its writer. `None` if the trace has no marker.
    pub(crate) marked_by: Option<u32>,
}

/// One block event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) kind: Kind,
    /// The name of the task in whose context the event occurred.
    pub(crate) comm: String,
    pub(crate) pid: u32,
    pub(crate) flags: Flags,
    pub(crate) sector: u64,
    pub(crate) sectors: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `block_bio_queue`: a task submits an operation on blocks.
    Queued,
    /// `block_rq_issue`: a request, often merged from several operations, is sent to the device,
    /// often by a kernel worker.
    Issued,
}

/// The `rwbs` field: the operation and its flags.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    pub(crate) is_write: bool,
    /// `true` if the device flushes its write cache: before a write, or as the only operation.
    pub(crate) sync_cache: bool,
    /// `true` if the write bypasses the device's write cache (forced unit access).
    pub(crate) fua: bool,
    /// `true` if a task waits for the operation.
    pub(crate) sync: bool,
    /// `true` if the blocks are metadata.
    pub(crate) metadata: bool,
}

impl Flags {
    /// Parses a field such as `WS`, `FWFSM` or `FF`. An `F` before the operation means that the
    /// device flushes its write cache first. Letters after the operation are its flags. `FF` only
    /// flushes the write cache.
    pub(crate) fn parse(rwbs: &str) -> Option<Self> {
        let (before, rest) = match rwbs.strip_prefix('F') {
            Some(rest) => (true, rest),
            None => (false, rwbs),
        };
        let (operation, how) = (rest.chars().next()?, rest.get(1..)?);
        Some(Self {
            is_write: operation == 'W',
            sync_cache: before || operation == 'F',
            fua: how.contains('F'),
            sync: how.contains('S'),
            metadata: how.contains('M'),
        })
    }
}

/// A line of a trace: an event with the task in whose context it occurred.
#[derive(Debug)]
struct Line<'a> {
    comm: &'a str,
    pid: u32,
    event: &'a str,
    fields: &'a str,
}

impl<'a> Line<'a> {
    /// Parses a line; returns `None` for a comment and for a line of another form.
    fn parse(line: &'a str) -> Option<Self> {
        // The CPU is the first number in brackets.
        let (at, _) = line.match_indices(" [").find(|(at, _)| {
            let cpu = line[at + 2..].split(']').next().unwrap_or("");
            !cpu.is_empty() && cpu.bytes().all(|byte| byte.is_ascii_digit())
        })?;
        let (comm, pid) = line[..at].trim().rsplit_once('-')?;
        let (_flags_and_time, rest) = line[at..].split_once(": ")?;
        let (event, fields) = rest.split_once(':')?;
        Some(Self { comm, pid: pid.parse().ok()?, event: event.trim(), fields })
    }

    /// Returns `true` if the text `marker` was written into the trace.
    fn is_marker(&self, marker: &str) -> bool {
        self.event == "tracing_mark_write" && self.fields.trim() == marker
    }

    /// Returns the block event; `None` for other events.
    fn block_event(&self) -> Option<Event> {
        let kind = match self.event {
            "block_bio_queue" => Kind::Queued,
            "block_rq_issue" => Kind::Issued,
            _ => return None,
        };
        // The fields look like `7,0 WS 4096 () 33112 + 8 be,0,4 [python3]`; only issued requests
        // have a byte count and a command.
        let (before, after) = self.fields.split_once(" + ")?;
        let flags = Flags::parse(before.split_whitespace().nth(1)?)?;
        let sector = before.rsplit(' ').next()?.parse().ok()?;
        let sectors = after.split_whitespace().next()?.parse().ok()?;
        Some(Event { kind, comm: self.comm.to_owned(), pid: self.pid, flags, sector, sectors })
    }
}

impl Trace {
    /// Parses the block events of `text`, and finds the task that wrote `marker`.
    pub(crate) fn parse(text: &str, marker: &str) -> Self {
        let mut trace = Self::default();
        for line in text.lines() {
            if let Some(lost) = lost(line) {
                trace.lost += lost;
            } else if let Some(line) = Line::parse(line) {
                if line.is_marker(marker) {
                    trace.marked_by = Some(line.pid);
                }
                trace.events.extend(line.block_event());
            }
        }
        trace
    }
}

/// Returns the number of dropped events if `line` reports this number, as the header of a trace and
/// some lines of `trace_pipe` do.
fn lost(line: &str) -> Option<u64> {
    if let Some((_, counts)) = line.split_once("entries-in-buffer/entries-written:") {
        let (buffered, written) = counts.split_whitespace().next()?.split_once('/')?;
        return Some(written.parse::<u64>().ok()?.saturating_sub(buffered.parse().ok()?));
    }
    let (_, count) = line.strip_suffix(" EVENTS]")?.split_once("[LOST ")?;
    count.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 5/7   #P:2
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
         python3-21537   [001] ...1.  1602.817535: tracing_mark_write: haul 7
    my - task [x]-99     [001] .....  1602.821093: block_bio_queue: 7,0 WS 33112 + 8 [my - task [x]]
 jbd2/loop0-8-21521   [000] .....  1602.821683: block_bio_queue: 7,0 FWFSM 262472 + 8 [jbd2/loop0-8]
    kworker/1:0H-24      [001] .....  1602.821691: block_rq_issue: 7,0 FF 0 () 0 + 0 none,0,0 [k]
    kworker/1:0H-24      [001] .....  1602.821899: block_rq_issue: 7,0 WSM 4096 () 262472 + 8 be,0,3 [k]
     old-kernel-3        [001] .....  1602.821899: block_rq_issue: 7,0 RAM 8192 () 264 + 16 [old-kernel]
     ksoftirqd/1-22      [001] ..s..  1602.821270: block_rq_complete: 7,0 WS () 33112 + 8 be,0,4 [0]
CPU:1 [LOST 5 EVENTS]
";

    #[test]
    fn block_events_and_the_marker_are_parsed() {
        let trace = Trace::parse(TEXT, "haul 7");
        assert_eq!((trace.lost, trace.marked_by), (7, Some(21537)));
        let event = |kind, comm: &str, pid, rwbs, sector, sectors| {
            let flags = Flags::parse(rwbs).unwrap();
            Event { kind, comm: comm.to_owned(), pid, flags, sector, sectors }
        };
        let expected = [
            event(Kind::Queued, "my - task [x]", 99, "WS", 33112, 8),
            event(Kind::Queued, "jbd2/loop0-8", 21521, "FWFSM", 262_472, 8),
            event(Kind::Issued, "kworker/1:0H", 24, "FF", 0, 0),
            event(Kind::Issued, "kworker/1:0H", 24, "WSM", 262_472, 8),
            event(Kind::Issued, "old-kernel", 3, "RAM", 264, 16),
        ];
        assert_eq!(trace.events, expected);
        assert_eq!(Trace::parse(TEXT, "haul 8").marked_by, None, "the marker of another instance");
    }

    #[test]
    fn cache_sync_before_the_operation_differs_from_flags_after_it() {
        for (rwbs, [is_write, sync_cache, fua, sync, metadata]) in [
            ("W", [true, false, false, false, false]),
            ("WSM", [true, false, false, true, true]),
            ("FWS", [true, true, false, true, false]),
            ("FWFSM", [true, true, true, true, true]),
            ("WFSM", [true, false, true, true, true]),
            ("FF", [false, true, false, false, false]),
            ("RAM", [false, false, false, false, true]),
        ] {
            let expected = Flags { is_write, sync_cache, fua, sync, metadata };
            assert_eq!(Flags::parse(rwbs), Some(expected), "{rwbs}");
        }
        assert_eq!((Flags::parse(""), Flags::parse("F")), (None, None));
    }

    #[test]
    fn malformed_lines_are_ignored() {
        let lines = "a
-1 [0] : block_bio_queue:
é-1 [001] . 1: block_rq_issue: F +
x-1 [001] .: block_bio_queue: 7,0 Wé 1 + 8
[LOST  EVENTS]
 [
x-1 [0]
# entries-in-buffer/entries-written: 9/1
x-1 [001] .: block_rq_issue: 7,0 é 1 + 8
";
        for line in lines.split('\n') {
            assert_eq!(Trace::parse(line, "").lost, 0, "{line}");
        }
    }
}
