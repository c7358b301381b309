//! Determines the states that a power cut may leave on different device kinds.
//!
//! # Source
//! \[Pillai14\] on the order that file systems preserve; \[SqliteCrash\] on device kinds.

use haul_testing::Random;

use crate::memory::atoms::{Atom, Part, atoms};
use crate::memory::medium::Medium;
use crate::memory::survival::{Fate, LOST, SURVIVES};

/// A device kind with a file system. In the following, "a name" means creating, renaming or
/// removing a file or directory. Synced data is intact on each kind; the kinds differ in the
/// unsynced data found after a power cut. The order is from harmless to hostile: each kind may
/// leave all states that the kinds before it may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Device {
    /// Writes and names become durable in order, each as a whole: a prefix of the steps survives.
    /// An example is a battery-backed controller below ext4 with `data=journal`.
    InOrder,
    /// Any subset of the writes survives, each write as a whole. A name survives only with all
    /// earlier writes and names. An example is a drive with power-loss protection that reorders its
    /// queue, below a journal that waits for the data (`data=ordered` without delayed allocation).
    WholeWrites,
    /// The rules of `WholeWrites` apply, but writes may also tear between sectors of 512 bytes. An
    /// example is a drive without power-loss protection below the same journal.
    Torn,
    /// The rules of `Torn` apply, but names do not wait for data: a name may survive without
    /// earlier writes to its file or to any other file. Names keep their order, as in a journal.
    /// Examples are ext4 with delayed allocation and xfs, both by default.
    NamesFirst,
    /// The rules of `NamesFirst` apply, but names have no order either: any subset of them may
    /// survive. A file may also have its new length with zeros instead of the written bytes.
    /// Examples are old versions of xfs, and file systems without a journal on unused blocks.
    LengthsFirst,
    /// The rules of `LengthsFirst` apply, but instead of zeros the file may have its blocks'
    /// previous content, which are another file's bytes. Examples are ext2, FAT, and ext4 with
    /// `data=writeback`.
    StaleBlocks,
}

impl Device {
    /// All device kinds, from harmless to hostile.
    pub const ALL: [Self; 6] = [
        Self::InOrder,
        Self::WholeWrites,
        Self::Torn,
        Self::NamesFirst,
        Self::LengthsFirst,
        Self::StaleBlocks,
    ];
}

/// An atom's possible fates if a given prefix of the ordered steps survives. An atom is an
/// independently surviving part of a step. The ordered steps are those that the device makes
/// durable in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PossibleFates {
    Fixed(Fate),
    /// The atom may have any fate whose number is below this number: [`LOST`], [`SURVIVES`] and,
    /// with 3, also the stale fate.
    Below(Fate),
}

/// The states that a power cut may leave of a [`Medium`] on one device kind. They can be counted,
/// numbered and drawn.
#[derive(Debug)]
pub struct States<'a> {
    medium: &'a Medium,
    device: Device,
    atoms: Vec<Atom>,
    /// The indexes of the atoms that change names.
    names: Vec<usize>,
}

impl Medium {
    /// Returns the states that a power cut may leave on this device kind.
    #[must_use]
    pub fn states(&self, device: Device) -> States<'_> {
        States::new(self, device)
    }
}

impl<'a> States<'a> {
    fn new(medium: &'a Medium, device: Device) -> Self {
        let lengths: Vec<u64> = medium.files.iter().map(|file| file.bytes()).collect();
        let lengths = (device >= Device::LengthsFirst).then_some(&lengths[..]);
        let atoms = atoms(&medium.pending, device >= Device::Torn, lengths);
        let is_name = |atom: &Atom| medium.pending[atom.step].name().is_some();
        let names = (0..atoms.len()).filter(|at| is_name(&atoms[*at])).collect();
        Self { medium, device, atoms, names }
    }

    /// Returns how many prefixes of the ordered steps may survive.
    fn cuts(&self) -> usize {
        match self.device {
            Device::InOrder => self.atoms.len() + 1,
            Device::WholeWrites | Device::Torn | Device::NamesFirst => self.names.len() + 1,
            Device::LengthsFirst | Device::StaleBlocks => 1,
        }
    }

    /// Returns each atom's possible fates if the prefix `cut` survives.
    fn possible_fates(&self, cut: usize) -> Vec<PossibleFates> {
        let any = |at: usize| match self.atoms[at].part {
            Part::Length if self.device >= Device::StaleBlocks => PossibleFates::Below(3),
            _ => PossibleFates::Below(2),
        };
        let by = |survives| PossibleFates::Fixed(if survives { SURVIVES } else { LOST });
        // `first_lost` is the first lost name's atom, `last` the last surviving name's atom.
        let first_lost = self.names.get(cut).copied().unwrap_or(self.atoms.len());
        let last = cut.checked_sub(1).map_or(0, |last| self.names.get(last).copied().unwrap_or(0));
        let is_name = |at: usize| self.names.binary_search(&at).is_ok();
        let of = |at: usize| match self.device {
            Device::InOrder => by(at < cut),
            Device::LengthsFirst | Device::StaleBlocks => any(at),
            _ if is_name(at) => by(at < first_lost),
            Device::WholeWrites | Device::Torn if cut > 0 && at < last => by(true),
            _ => any(at),
        };
        (0..self.atoms.len()).map(of).collect()
    }

    /// Returns the number of states; `u64::MAX` if the number overflows.
    #[must_use]
    pub fn count(&self) -> u64 {
        let ways_at = |cut| self.possible_fates(cut).into_iter().fold(1, ways_of);
        // Each independent atom doubles the number of states, so more than 64 independent atoms
        // overflow it.
        if self.device != Device::InOrder && self.atoms.len() - self.names.len() > 64 {
            return u64::MAX;
        }
        (0..self.cuts()).map(ways_at).fold(0, u64::saturating_add)
    }

    /// Returns the state `n`, which must be below [`States::count`].
    ///
    /// # Panics
    /// If `n` is not below [`States::count`].
    #[must_use]
    pub fn nth(&self, n: u64) -> Medium {
        let mut rest = n;
        for cut in 0..self.cuts() {
            let possible = self.possible_fates(cut);
            let ways = possible.iter().fold(1, |ways, fates| ways_of(ways, *fates));
            if rest >= ways {
                rest -= ways;
                continue;
            }
            return self.medium.with_fates(&self.atoms, |at| match possible[at] {
                PossibleFates::Fixed(fate) => fate,
                PossibleFates::Below(fates) => {
                    let fate = rest % u64::from(fates);
                    rest /= u64::from(fates);
                    u8::try_from(fate).unwrap_or(SURVIVES)
                }
            });
        }
        unreachable!("fewer than {n} states")
    }

    /// Draws a random state. With few unsynced atoms, any state may be drawn. With many, the drawn
    /// states have the patterns most likely to reveal bugs: nearly all atoms, nearly none, a random
    /// half, a run of neighbours, or whole steps are lost.
    #[must_use]
    pub fn draw(&self, random: &mut Random) -> Medium {
        let cuts = self.cuts() as u64;
        let cut = match random.below(4) {
            0 => 0,
            1 => cuts - 1,
            _ => random.below(cuts),
        };
        let possible = self.possible_fates(usize::try_from(cut).unwrap_or(0));
        let mut pattern = Pattern::draw(random, self.atoms.len() as u64);
        self.medium.with_fates(&self.atoms, |at| match possible[at] {
            PossibleFates::Fixed(fate) => fate,
            PossibleFates::Below(fates) if pattern.keeps(at as u64, self.atoms[at].step as u64) => {
                SURVIVES + u8::try_from(pattern.random.below(u64::from(fates) - 1)).unwrap_or(0)
            }
            PossibleFates::Below(_) => LOST,
        })
    }
}

fn ways_of(ways: u64, fates: PossibleFates) -> u64 {
    match fates {
        PossibleFates::Fixed(_) => ways,
        PossibleFates::Below(fates) => ways.saturating_mul(u64::from(fates)),
    }
}

/// A random pattern of surviving atoms.
#[derive(Debug)]
struct Pattern {
    random: Random,
    kind: Kind,
    /// `true` if the atoms selected by `kind` are lost instead of surviving.
    is_inverted: bool,
}

#[derive(Debug)]
enum Kind {
    /// Each atom is selected with this probability, in sixteenths.
    Fraction(u64),
    Run(std::ops::Range<u64>),
    /// Whole steps are selected, each with probability 1/2 by a hash of this seed and the step.
    Steps(u64),
}

impl Pattern {
    fn draw(random: &mut Random, atoms: u64) -> Self {
        let atoms = atoms.max(1);
        let kind = match random.below(8) {
            0 => Kind::Fraction(0),
            1 => Kind::Fraction(1),
            2 | 3 => Kind::Fraction(8),
            4 => Kind::Run(0..random.below(atoms) + 1),
            5 => Kind::Steps(random.number()),
            n => {
                // A run of up to 16 sectors includes the typical loss, a page of 8 sectors.
                let from = random.below(atoms);
                let longest = if n == 6 { 16 } else { atoms };
                Kind::Run(from..from + 1 + random.below(longest))
            }
        };
        Self { random: Random(random.number()), kind, is_inverted: random.below(2) == 0 }
    }

    fn keeps(&mut self, at: u64, step: u64) -> bool {
        let keeps = match &self.kind {
            Kind::Fraction(sixteenths) => self.random.below(16) < *sixteenths,
            Kind::Run(run) => run.contains(&at),
            Kind::Steps(seed) => Random(seed ^ (step << 32)).below(2) == 0,
        };
        keeps != self.is_inverted
    }
}

#[cfg(test)]
mod tests {
    use crate::memory::step::Step;

    use super::*;

    fn write(file: usize, offset: u64, bytes: usize) -> Step {
        Step::Write { file, offset, bytes: crate::memory::Bytes(vec![7; bytes].into()) }
    }

    fn create(name: &str, file: usize) -> Step {
        Step::Create { name: name.to_owned(), file }
    }

    fn medium(steps: &[Step]) -> Medium {
        let mut medium = Medium::default();
        steps.iter().for_each(|step| medium.apply_step(step));
        medium
    }

    fn counts(steps: &[Step]) -> [u64; 6] {
        Device::ALL.map(|device| medium(steps).states(device).count())
    }

    #[test]
    fn number_of_states_depends_on_the_device() {
        let sync = Step::Sync { file: 0 };
        let dir = Step::SyncDir { dir: String::new() };
        assert_eq!(counts(&[]), [1; 6]);
        assert_eq!(counts(&[create("a", 0)]), [2; 6]);
        let named = [create("a", 0), dir.clone()];
        let and = |steps: &[Step]| counts(&[&named, steps].concat());
        assert_eq!(and(&[]), [1; 6], "synced data is intact");
        // One sector survives or not; with independent lengths, the file may also have zeros or
        // stale bytes.
        assert_eq!(and(&[write(0, 0, 512)]), [2, 2, 2, 2, 4, 6]);
        assert_eq!(and(&[write(0, 0, 512), sync.clone()]), [1; 6]);
        // The write covers parts of three sectors.
        assert_eq!(and(&[write(0, 100, 1000)]), [2, 2, 8, 8, 16, 24]);
        // A write that does not extend the file has no atom for a length.
        assert_eq!(and(&[write(0, 0, 512), sync.clone(), write(0, 0, 512)]), [2; 6]);
        // A name is created between two writes. If the name is lost, any of the writes may survive.
        // If the name survives, so does the first write on devices whose names wait for data.
        let between = [write(0, 0, 512), create("b", 1), write(0, 512, 512)];
        assert_eq!(and(&between), [4, 4 + 2, 4 + 2, 2 * 4, 2 * 16, 2 * 36]);
        // Names survive in order, or on the last two kinds in any combination.
        assert_eq!(and(&[create("b", 1), create("c", 2)]), [3, 3, 3, 3, 4, 4]);
    }

    #[test]
    fn draw_reaches_all_states_and_no_others() {
        let name = |n: u64| format!("{n}");
        let steps = [
            create("a", 0),
            Step::SyncDir { dir: String::new() },
            write(0, 0, 1024),
            create(&name(1), 1),
            write(1, 0, 512),
            create(&name(2), 2),
        ];
        let medium = medium(&steps);
        for device in Device::ALL {
            let states = medium.states(device);
            let show = |medium: Medium| format!("{:?}", medium);
            let mut all: Vec<String> = (0..states.count()).map(|n| show(states.nth(n))).collect();
            all.sort();
            all.dedup();
            let mut random = Random(1);
            let mut drawn: Vec<String> =
                (0..4000).map(|_| show(states.draw(&mut random))).collect();
            drawn.sort();
            drawn.dedup();
            assert!(drawn.iter().all(|state| all.binary_search(state).is_ok()), "{device:?}");
            assert!(drawn.len() * 10 > all.len() * 9, "{device:?}: {} {}", drawn.len(), all.len());
        }
    }

    #[test]
    fn hostile_device_leaves_all_states_of_kinder_ones() {
        let steps =
            [create("a", 0), write(0, 0, 700), create("b", 1), write(1, 0, 512), create("c", 2)];
        let medium = medium(&steps);
        let all = |device: Device| -> Vec<String> {
            let states = medium.states(device);
            (0..states.count()).map(|n| format!("{:?}", states.nth(n))).collect()
        };
        for pair in Device::ALL.windows(2) {
            let more = all(pair[1]);
            assert!(all(pair[0]).iter().all(|state| more.contains(state)), "{pair:?}");
        }
    }
}
