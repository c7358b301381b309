//! Parses the processor's name and the memory size from files of `/proc`. Performs no I/O.

/// Returns the processor's name from the text of `/proc/cpuinfo`, where the key of the name depends
/// on the architecture.
pub(crate) fn cpu_model(cpuinfo: &str) -> Option<String> {
    ["model name", "Model", "cpu model", "uarch"].iter().find_map(|name| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            let value = value.trim();
            (key.trim() == *name && !value.is_empty()).then(|| value.to_owned())
        })
    })
}

/// Returns the memory of the machine in bytes, from the text of `/proc/meminfo`.
pub(crate) fn memory_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_named_as_the_kernel_names_them() {
        for (text, expected) in [
            ("processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n", Some("AMD EPYC")),
            ("processor : 0\nBogoMIPS : 1\n\nModel : Raspberry Pi 4\n", Some("Raspberry Pi 4")),
            ("model name :\n", None),
            ("", None),
        ] {
            assert_eq!(cpu_model(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn memory_is_in_bytes() {
        let text = "MemFree:  1 kB\nMemTotal:       24689612 kB\n";
        assert_eq!(memory_bytes(text), Some(24_689_612 * 1024));
        for text in ["", "MemTotal: kB", "MemTotal: -1 kB", "MemTotal: 18446744073709551615 kB"] {
            assert_eq!(memory_bytes(text), None, "{text}");
        }
    }
}
