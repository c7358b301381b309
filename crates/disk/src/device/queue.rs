//! Parses the request queue attributes in `/sys/block/<disk>/queue`. The caller reads the files.
//!
//! Source: the kernel's `Documentation/ABI/stable/sysfs-block`.

/// A block device's request queue attributes. Unknown attributes are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queue {
    /// `true` if the device reports itself as rotational. Virtual disks often do so wrongly.
    pub rotational: Option<bool>,
    /// `true` if writes may stay in a cache that is lost at power failure, so that a sync must send
    /// a flush request.
    pub volatile_write_cache: Option<bool>,
    /// `true` if a single write can bypass the volatile write cache (forced unit access).
    pub fua: Option<bool>,
    /// A logical block's size in bytes. It is the smallest addressable unit.
    pub logical_block_bytes: Option<u64>,
    /// A physical block's size in bytes. It is the smallest write without a read-modify-write.
    pub physical_block_bytes: Option<u64>,
    /// The length in bytes of the largest write that a power failure cannot tear; 0 if the device
    /// guarantees no atomic writes.
    pub atomic_write_bytes_max: Option<u64>,
    /// The maximum number of bytes that the device zeroes in one request without data transfer
    /// (`write_zeroes_unmap_max_hw_bytes`, Linux 6.17); 0 if unsupported.
    pub zero_write_bytes_max: Option<u64>,
    /// The kernel's maximum readahead for sequential reads, in bytes (`read_ahead_kb`).
    pub readahead_bytes: Option<u64>,
    /// The maximum number of requests in the queue (`nr_requests`).
    pub depth: Option<u64>,
    /// The active I/O scheduler, possibly `none`.
    pub scheduler: Option<String>,
}

impl Queue {
    /// Parses the attribute files. `read` returns the text of the file with the given name. An
    /// attribute whose file is missing is `None`.
    pub(crate) fn of(read: impl Fn(&str) -> Option<String>) -> Self {
        let number = |name| read(name)?.trim().parse::<u64>().ok();
        let flag = |name| match number(name)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        };
        Self {
            rotational: flag("rotational"),
            volatile_write_cache: match read("write_cache").as_deref().map(str::trim) {
                Some("write back") => Some(true),
                Some("write through") => Some(false),
                _ => None,
            },
            fua: flag("fua"),
            logical_block_bytes: number("logical_block_size"),
            physical_block_bytes: number("physical_block_size"),
            atomic_write_bytes_max: number("atomic_write_unit_max_bytes"),
            zero_write_bytes_max: number("write_zeroes_unmap_max_hw_bytes"),
            readahead_bytes: number("read_ahead_kb").and_then(|kib| kib.checked_mul(1024)),
            depth: number("nr_requests"),
            scheduler: read("scheduler").as_deref().and_then(active_scheduler),
        }
    }
}

/// Returns the word in brackets from a text such as `none [mq-deadline] kyber`; a single word needs
/// no brackets.
pub(crate) fn active_scheduler(text: &str) -> Option<String> {
    let mut words = text.split_whitespace();
    let bracketed = |word: &str| Some(word.strip_prefix('[')?.strip_suffix(']')?.to_owned());
    words.clone().find_map(bracketed).or_else(|| {
        let only = words.next()?;
        words.next().is_none().then(|| only.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A queue's attribute files, as `name: text` lines.
    fn queue(files: &str) -> Queue {
        let read = |name: &str| {
            let mut lines = files.lines().filter_map(|line| line.trim().split_once(": "));
            lines.find(|(file, _)| *file == name).map(|(_, text)| format!("{text}\n"))
        };
        Queue::of(read)
    }

    #[test]
    fn attributes_of_a_virtio_disk_are_parsed() {
        let queue = queue(
            "rotational: 1
            write_cache: write back
            fua: 0
            logical_block_size: 512
            physical_block_size: 4096
            atomic_write_unit_max_bytes: 0
            write_zeroes_unmap_max_hw_bytes: 0
            read_ahead_kb: 8192
            nr_requests: 256
            scheduler: none [mq-deadline] kyber bfq",
        );
        let expected = Queue {
            rotational: Some(true),
            volatile_write_cache: Some(true),
            fua: Some(false),
            logical_block_bytes: Some(512),
            physical_block_bytes: Some(4096),
            atomic_write_bytes_max: Some(0),
            zero_write_bytes_max: Some(0),
            readahead_bytes: Some(8 << 20),
            depth: Some(256),
            scheduler: Some("mq-deadline".to_owned()),
        };
        assert_eq!(queue, expected);
    }

    #[test]
    fn attributes_missing_from_older_kernels_are_unknown() {
        let queue = queue(
            "rotational: 0
            write_cache: write through
            fua: 1
            logical_block_size: 4096
            physical_block_size: 16384
            read_ahead_kb: 128
            nr_requests: 1023
            scheduler: [none] mq-deadline",
        );
        let expected = Queue {
            rotational: Some(false),
            volatile_write_cache: Some(false),
            fua: Some(true),
            logical_block_bytes: Some(4096),
            physical_block_bytes: Some(16384),
            atomic_write_bytes_max: None,
            zero_write_bytes_max: None,
            readahead_bytes: Some(128 << 10),
            depth: Some(1023),
            scheduler: Some("none".to_owned()),
        };
        assert_eq!(queue, expected);
    }

    #[test]
    fn missing_or_malformed_attributes_are_unknown() {
        assert_eq!(queue(""), Queue::default());
        let malformed = queue(
            "rotational: 2
            write_cache: perhaps
            fua: yes
            logical_block_size: -512
            read_ahead_kb: 18446744073709551615
            scheduler: none mq-deadline",
        );
        assert_eq!(malformed, Queue::default());
    }

    #[test]
    fn single_scheduler_needs_no_brackets() {
        assert_eq!(active_scheduler("none\n"), Some("none".to_owned()));
        assert_eq!(active_scheduler("\n"), None);
    }

    proptest! {
        #[test]
        fn parser_never_panics(text in "\\PC*", number in any::<u64>()) {
            let _ = Queue::of(|_| Some(text.clone()));
            let _ = Queue::of(|_| Some(number.to_string()));
            let _ = active_scheduler(&text);
        }
    }
}
