//! What the files below `/sys/block/<disk>/queue` say. Pure.
//!
//! Source: `Documentation/ABI/stable/sysfs-block` of the kernel.

/// What the request queue of a block device says of itself. What it does not say is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Queue {
    /// Whether it has heads that seek. A claim: virtual disks make it whatever is below them.
    pub rotational: Option<bool>,
    /// Whether what was written may wait in a cache that forgets when the power goes, so that a
    /// sync has to empty it.
    pub volatile_write_cache: Option<bool>,
    /// Whether a single write can be sent past that cache (forced unit access).
    pub fua: Option<bool>,
    /// The smallest unit it can address.
    pub logical_block_bytes: Option<u64>,
    /// The smallest unit it writes without reading back first.
    pub physical_block_bytes: Option<u64>,
    /// The largest write that is never torn by a power cut; 0 means no such promise.
    pub atomic_write_bytes_max: Option<u64>,
    /// The most it fills with zeros in one request without being sent them; 0 means it cannot.
    /// (`write_zeroes_unmap_max_hw_bytes`, Linux 6.17.)
    pub zero_write_bytes_max: Option<u64>,
    /// How far the kernel reads ahead in a file that is read in sequence.
    pub readahead_bytes: Option<u64>,
    /// How many requests it queues.
    pub depth: Option<u64>,
    /// The scheduler that orders them; `none` is one too.
    pub scheduler: Option<String>,
}

impl Queue {
    /// The queue whose attribute files `read` gives by name, as far as they are there.
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

/// The one in brackets of `none [mq-deadline] kyber`; a word alone needs no brackets.
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

    /// The attribute files of a queue, as `name: text` lines.
    fn queue(files: &str) -> Queue {
        let read = |name: &str| {
            let mut lines = files.lines().filter_map(|line| line.trim().split_once(": "));
            lines.find(|(file, _)| *file == name).map(|(_, text)| format!("{text}\n"))
        };
        Queue::of(read)
    }

    #[test]
    fn a_virtio_disk_is_understood() {
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
    fn an_nvme_disk_of_an_older_kernel_leaves_the_newer_answers_open() {
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
    fn what_is_missing_or_strange_is_unknown() {
        assert_eq!(queue(""), Queue::default());
        let strange = queue(
            "rotational: 2
            write_cache: perhaps
            fua: yes
            logical_block_size: -512
            read_ahead_kb: 18446744073709551615
            scheduler: none mq-deadline",
        );
        assert_eq!(strange, Queue::default());
    }

    #[test]
    fn a_scheduler_alone_needs_no_brackets() {
        assert_eq!(active_scheduler("none\n"), Some("none".to_owned()));
        assert_eq!(active_scheduler("\n"), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC*", number in any::<u64>()) {
            let _ = Queue::of(|_| Some(text.clone()));
            let _ = Queue::of(|_| Some(number.to_string()));
            let _ = active_scheduler(&text);
        }
    }
}
