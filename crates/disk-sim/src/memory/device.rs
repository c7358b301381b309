//! Which states a power cut may leave, on which kind of device.
//!
//! # Source
//! \[Pillai14\], which file systems keep which order; \[SqliteCrash\], kinds of devices.

use crate::memory::medium::{Atom, Fate, LOST, Medium, Part, SURVIVES, end_of};
use crate::memory::step::Step;
use crate::random::Random;

/// What tears at no smaller place.
const SECTOR_BYTES: u64 = 512;

/// A device with a file system on it, from kind to hostile. What was synced is whole on each; the
/// kinds say what else may be there after a power cut. Each may leave what the kinder ones may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Device {
    /// Writes and names arrive one after the other, each whole: what is left is a front part of
    /// what was done. A controller with a battery below ext4 with `data=journal`.
    InOrder,
    /// Of what was written, any whole writes are there; a name only with all that was written and
    /// named before it. A drive with power-loss protection, whose queue writes in any order,
    /// below a journal that waits for it (`data=ordered` without delayed allocation).
    WholeWrites,
    /// The same, and writes tear between sectors of 512 bytes. A drive without power-loss
    /// protection in the same place.
    Torn,
    /// The same, and names do not wait for bytes: a name may be there, and what was written
    /// before it, to this file or to any other, not. Names keep their order, as in a journal. ext4
    /// with delayed allocation and xfs, as they come.
    NamesFirst,
    /// The same, and nothing keeps any order: any names may be there, and a file may be as long
    /// as it was made, with zeros instead of the bytes. xfs of old, file systems without a journal
    /// on blocks that were never used.
    LengthsFirst,
    /// The same, and instead of zeros there may be what was in those blocks before: bytes of
    /// another file. ext2, FAT, ext4 with `data=writeback`.
    StaleBlocks,
}

impl Device {
    /// All of them, from kind to hostile.
    pub const ALL: [Self; 6] = [
        Self::InOrder,
        Self::WholeWrites,
        Self::Torn,
        Self::NamesFirst,
        Self::LengthsFirst,
        Self::StaleBlocks,
    ];
}

/// Which of the unsynced sectors and names survive, one by one: a plain choice, for a test that
/// is not about kinds of devices.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the field is the seed of the choice")]
pub enum Survival {
    /// None.
    Nothing,
    /// All.
    Everything,
    /// Each with one chance in two.
    Half { seed: u64 },
    /// Nearly all.
    Most { seed: u64 },
}

impl Survival {
    pub(crate) fn fates(self) -> impl FnMut() -> Fate {
        let (seed, of_16) = match self {
            Self::Nothing => (0, 0),
            Self::Everything => (0, 16),
            Self::Half { seed } => (seed, 8),
            Self::Most { seed } => (seed, 15),
        };
        let mut random = Random(seed);
        move || if random.below(16) < of_16 { SURVIVES } else { LOST }
    }
}

/// The pending steps in the pieces that survive apart from each other.
fn atoms(pending: &[Step], is_torn: bool, lengths: Option<&[u64]>) -> Vec<Atom> {
    let mut atoms = Vec::new();
    let mut lengths = lengths.map(<[u64]>::to_vec);
    for (number, step) in pending.iter().enumerate() {
        let mut add = |part| atoms.push(Atom { step: number, part });
        if let (Some(lengths), Some(file)) = (&mut lengths, step.file()) {
            if end_of(step) > lengths[file] {
                add(Part::Length);
            }
            lengths[file] = match step {
                Step::Resize { bytes, .. } => *bytes,
                _ => lengths[file].max(end_of(step)),
            };
        }
        match step {
            Step::Write { offset, bytes, .. } if is_torn => {
                let mut from = 0;
                while from < bytes.0.len() {
                    let in_sector = (offset + from as u64) % SECTOR_BYTES;
                    let step = usize::try_from(SECTOR_BYTES - in_sector).unwrap_or(usize::MAX);
                    let to = from.saturating_add(step).min(bytes.0.len());
                    add(Part::Bytes(from..to));
                    from = to;
                }
            }
            _ => add(Part::Whole),
        }
    }
    atoms
}

/// The pending steps in sectors and names.
pub(crate) fn torn_atoms(pending: &[Step]) -> Vec<Atom> {
    atoms(pending, true, None)
}

/// What may become of an atom, once it is decided how many names survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum May {
    Only(Fate),
    /// Any fate below this.
    Any(Fate),
}

/// All that a power cut may leave of a [`Medium`] on one kind of device.
#[derive(Debug)]
pub struct States<'a> {
    medium: &'a Medium,
    device: Device,
    atoms: Vec<Atom>,
    /// Which of the atoms are names.
    names: Vec<usize>,
}

impl<'a> States<'a> {
    pub(crate) fn new(medium: &'a Medium, device: Device) -> Self {
        let lengths: Vec<u64> = medium.files.iter().map(|file| file.bytes()).collect();
        let lengths = (device >= Device::LengthsFirst).then_some(&lengths[..]);
        let atoms = atoms(&medium.pending, device >= Device::Torn, lengths);
        let is_name = |atom: &Atom| medium.pending[atom.step].name().is_some();
        let names = (0..atoms.len()).filter(|at| is_name(&atoms[*at])).collect();
        Self { medium, device, atoms, names }
    }

    /// How many ways there are to cut what keeps its order.
    fn cuts(&self) -> usize {
        match self.device {
            Device::InOrder => self.atoms.len() + 1,
            Device::WholeWrites | Device::Torn | Device::NamesFirst => self.names.len() + 1,
            Device::LengthsFirst | Device::StaleBlocks => 1,
        }
    }

    /// What may become of each atom at one of these cuts.
    fn may(&self, cut: usize) -> Vec<May> {
        let any = |at: usize| match self.atoms[at].part {
            Part::Length if self.device >= Device::StaleBlocks => May::Any(3),
            _ => May::Any(2),
        };
        let by = |survives| May::Only(if survives { SURVIVES } else { LOST });
        // The first name that is lost, and where the last that survives is.
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

    /// How many there are; `u64::MAX` stands for more than can be counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        let of_cut = |cut| self.may(cut).into_iter().fold(1, ways_of);
        // Each free atom doubles it, so that there is no need to look at all of them.
        if self.device != Device::InOrder && self.atoms.len() - self.names.len() > 64 {
            return u64::MAX;
        }
        (0..self.cuts()).map(of_cut).fold(0, u64::saturating_add)
    }

    /// One of them, by its number below [`States::count`].
    ///
    /// # Panics
    /// When there are not so many.
    #[must_use]
    pub fn nth(&self, n: u64) -> Medium {
        let mut rest = n;
        for cut in 0..self.cuts() {
            let may = self.may(cut);
            let ways = may.iter().fold(1, |ways, may| ways_of(ways, *may));
            if rest >= ways {
                rest -= ways;
                continue;
            }
            return self.medium.left(&self.atoms, |at| match may[at] {
                May::Only(fate) => fate,
                May::Any(fates) => {
                    let fate = rest % u64::from(fates);
                    rest /= u64::from(fates);
                    u8::try_from(fate).unwrap_or(SURVIVES)
                }
            });
        }
        unreachable!("there are not {n} states")
    }

    /// One of them by chance: of few unsynced atoms any, of many such as tell most, where nearly
    /// all, nearly none, one, a run of neighbours or a whole step is lost or kept.
    #[must_use]
    pub fn draw(&self, random: &mut Random) -> Medium {
        let cuts = self.cuts() as u64;
        let cut = match random.below(4) {
            0 => 0,
            1 => cuts - 1,
            _ => random.below(cuts),
        };
        let may = self.may(usize::try_from(cut).unwrap_or(0));
        let mut pattern = Pattern::draw(random, self.atoms.len() as u64);
        self.medium.left(&self.atoms, |at| match may[at] {
            May::Only(fate) => fate,
            May::Any(fates) if pattern.keeps(at as u64, self.atoms[at].step as u64) => {
                SURVIVES + u8::try_from(pattern.random.below(u64::from(fates) - 1)).unwrap_or(0)
            }
            May::Any(_) => LOST,
        })
    }
}

fn ways_of(ways: u64, may: May) -> u64 {
    match may {
        May::Only(_) => ways,
        May::Any(fates) => ways.saturating_mul(u64::from(fates)),
    }
}

/// Which of many atoms are kept.
#[derive(Debug)]
struct Pattern {
    random: Random,
    kind: Kind,
    /// The other way round.
    is_turned: bool,
}

#[derive(Debug)]
enum Kind {
    /// So many of 16.
    Share(u64),
    Run(std::ops::Range<u64>),
    /// Whole steps, by this seed.
    Steps(u64),
}

impl Pattern {
    fn draw(random: &mut Random, atoms: u64) -> Self {
        let atoms = atoms.max(1);
        let kind = match random.below(8) {
            0 => Kind::Share(0),
            1 => Kind::Share(1),
            2 | 3 => Kind::Share(8),
            4 => Kind::Run(0..random.below(atoms) + 1),
            5 => Kind::Steps(random.number()),
            n => {
                // A page is often what is lost, and is 8 sectors.
                let from = random.below(atoms);
                let longest = if n == 6 { 16 } else { atoms };
                Kind::Run(from..from + 1 + random.below(longest))
            }
        };
        Self { random: Random(random.number()), kind, is_turned: random.below(2) == 0 }
    }

    fn keeps(&mut self, at: u64, step: u64) -> bool {
        let keeps = match &self.kind {
            Kind::Share(of_16) => self.random.below(16) < *of_16,
            Kind::Run(run) => run.contains(&at),
            Kind::Steps(seed) => Random(seed ^ (step << 32)).below(2) == 0,
        };
        keeps != self.is_turned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(file: usize, offset: u64, bytes: usize) -> Step {
        Step::Write { file, offset, bytes: crate::memory::Bytes(vec![7; bytes].into()) }
    }

    fn create(name: &str, file: usize) -> Step {
        Step::Create { name: name.to_owned(), file }
    }

    fn medium(steps: &[Step]) -> Medium {
        let mut medium = Medium::default();
        steps.iter().for_each(|step| medium.take(step));
        medium
    }

    fn counts(steps: &[Step]) -> [u64; 6] {
        Device::ALL.map(|device| medium(steps).states(device).count())
    }

    #[test]
    fn each_kind_of_device_has_its_states() {
        let sync = Step::Sync { file: 0 };
        let dir = Step::SyncDir { dir: String::new() };
        assert_eq!(counts(&[]), [1; 6]);
        assert_eq!(counts(&[create("a", 0)]), [2; 6]);
        let named = [create("a", 0), dir.clone()];
        let and = |steps: &[Step]| counts(&[&named, steps].concat());
        assert_eq!(and(&[]), [1; 6], "what was synced is there");
        // One sector; where lengths go alone, also none with zeros or stale bytes.
        assert_eq!(and(&[write(0, 0, 512)]), [2, 2, 2, 2, 4, 6]);
        assert_eq!(and(&[write(0, 0, 512), sync.clone()]), [1; 6]);
        // Two sectors and a bit of a third.
        assert_eq!(and(&[write(0, 100, 1000)]), [2, 2, 8, 8, 16, 24]);
        // Behind what is there already, no length.
        assert_eq!(and(&[write(0, 0, 512), sync.clone(), write(0, 0, 512)]), [2; 6]);
        // A name between two writes: lost, with any of both; there, with the first for certain
        // where names wait for bytes.
        let between = [write(0, 0, 512), create("b", 1), write(0, 512, 512)];
        assert_eq!(and(&between), [4, 4 + 2, 4 + 2, 2 * 4, 2 * 16, 2 * 36]);
        // Names in order, or in any.
        assert_eq!(and(&[create("b", 1), create("c", 2)]), [3, 3, 3, 3, 4, 4]);
    }

    #[test]
    fn of_the_states_any_may_be_drawn_and_nothing_else() {
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
    fn a_hostile_device_leaves_what_the_kinder_ones_do() {
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
