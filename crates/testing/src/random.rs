//! Generates reproducible pseudorandom numbers.

use std::time::SystemTime;

/// A pseudorandom number generator. The field is the state of the generator. The sequence for a
/// given seed never changes.
///
/// # Source
/// \[Steele14\]: the algorithm SplitMix64.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// Creates a generator with the seed that [`seed`] returns, and prints the seed.
    #[must_use]
    #[expect(clippy::print_stdout, reason = "the harness shows it if the test fails")]
    pub fn from_environment() -> Self {
        let seed = seed();
        println!("SEED={seed}");
        Self(seed)
    }

    /// Returns the next number.
    #[must_use]
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns the next number below `end`. `end` must not be zero.
    #[must_use]
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    /// Returns a random index of a slice with `length` items. `length` must not be zero.
    #[must_use]
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("it is less than `length`")
    }

    /// Returns a random item. `items` must not be empty.
    #[must_use]
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// Returns `length` random bytes, which cannot be compressed.
    #[must_use]
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend_from_slice(&self.number().to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }
}

/// Returns `length` bytes that cannot be compressed. The same seed always results in the same
/// bytes.
#[must_use]
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    Random(seed).bytes(length)
}

/// Returns the seed of a test: the environment variable `SEED`, which reproduces a failure, or else
/// a new seed.
///
/// # Panics
/// Panics if `SEED` is not a number, because another seed would not reproduce the failure.
#[must_use]
#[expect(clippy::panic, reason = "it fails the test")]
pub fn seed() -> u64 {
    let Ok(seed) = std::env::var("SEED") else {
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        return u64::from(since.subsec_nanos()) ^ since.as_secs();
    };
    seed.parse().unwrap_or_else(|error| panic!("SEED={seed}: {error}"))
}

/// Returns how deep a random exploration goes: the environment variable `HAUL_DEPTH`, or else 1.
/// The gate runs at depth 1, `.ci/run full` at 10, and `.ci/run long` deeper still.
///
/// # Panics
/// Panics if the variable is not a positive number.
#[must_use]
#[expect(clippy::panic, reason = "it fails the test")]
pub fn depth() -> u64 {
    let Ok(depth) = std::env::var("HAUL_DEPTH") else { return 1 };
    match depth.parse() {
        Ok(depth) if depth > 0 => depth,
        _ => panic!("HAUL_DEPTH={depth} is not a positive number"),
    }
}

/// Returns the command that repeats the running test with the same seed and depth.
#[must_use]
pub fn replay_command(seed: u64) -> String {
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    let depth = match depth() {
        1 => String::new(),
        depth => format!("HAUL_DEPTH={depth} "),
    };
    format!("{depth}SEED={seed} cargo test -p {package} {test}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_of_a_seed_is_that_of_splitmix64() {
        let mut random = Random(1_234_567);
        let numbers: Vec<_> = (0..3).map(|_| random.number()).collect();
        assert_eq!(
            numbers,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
        let bytes = Random(1_234_567).bytes(17);
        assert_eq!(bytes[..8], numbers[0].to_le_bytes());
        assert_eq!((bytes.len(), bytes[16]), (17, numbers[2].to_le_bytes()[0]));
        assert_eq!(Random(1_234_567).index(10), 7);
        assert_eq!(*Random(1_234_567).pick(b"0123456789"), b'7');
    }
}
