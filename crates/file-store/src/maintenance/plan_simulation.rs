//! Simulates a store of equal objects that are overwritten repeatedly, with the decisions of a real
//! store. Shows that there is a steady state, and its write amplification.

use haul_testing::Random;

use crate::maintenance::plan::{Candidate, SpaceThresholds, choose};

/// Objects in a volume.
const SLOTS: u64 = 250;

/// The capacity in volumes of 16 MiB: 1.5 GiB without the space of the file system and indexes.
const VOLUMES: u64 = 85;

/// Volumes reserved for compaction.
const RESERVE: u64 = 2;

struct Volume {
    /// The objects written to it, in order.
    objects: Vec<u32>,
    live: u64,
}

struct Simulation {
    volumes: Vec<Option<Volume>>,
    tail: usize,
    /// Each object's volume and slot.
    locations: Vec<(u32, u32)>,
    credit: f64,
    user: u64,
    moved: u64,
    stalls: u64,
}

impl Simulation {
    fn new(live_percent: u64) -> Self {
        let objects = (VOLUMES - RESERVE) * SLOTS * live_percent / 100;
        let mut new = Self {
            volumes: vec![Some(Volume { objects: Vec::new(), live: 0 })],
            tail: 0,
            locations: vec![(u32::MAX, 0); usize::try_from(objects).unwrap()],
            credit: 0.0,
            user: 0,
            moved: 0,
            stalls: 0,
        };
        (0..u32::try_from(objects).unwrap()).for_each(|object| new.write(object));
        new
    }

    /// Returns the number of free slots outside of the reserve.
    fn free(&self) -> u64 {
        let used = self.volumes.iter().flatten().count() as u64;
        let tail = self.volumes[self.tail].as_ref().unwrap();
        let left = SLOTS - tail.objects.len() as u64;
        ((VOLUMES - used) * SLOTS + left).saturating_sub(RESERVE * SLOTS)
    }

    fn write(&mut self, object: u32) {
        let tail = self.volumes[self.tail].as_ref().unwrap();
        if tail.objects.len() as u64 == SLOTS {
            assert!((self.volumes.iter().flatten().count() as u64) < VOLUMES, "the disk is full");
            self.volumes.push(Some(Volume { objects: Vec::new(), live: 0 }));
            self.tail = self.volumes.len() - 1;
        }
        let (volume, _) = self.locations[object as usize];
        if let Some(old) = self.volumes.get_mut(volume as usize) {
            old.as_mut().unwrap().live -= 1;
        }
        let tail = self.volumes[self.tail].as_mut().unwrap();
        let slot = u32::try_from(tail.objects.len()).unwrap();
        self.locations[object as usize] = (u32::try_from(self.tail).unwrap(), slot);
        tail.objects.push(object);
        tail.live += 1;
    }

    fn thresholds() -> SpaceThresholds {
        SpaceThresholds::new(SLOTS, VOLUMES * SLOTS)
    }

    /// Compacts one volume, if one qualifies, while writers store as much as they are granted.
    fn compact(&mut self, draw: &mut dyn FnMut() -> u32) -> bool {
        let candidates = self.volumes.iter().enumerate().filter_map(|(number, volume)| {
            let volume = volume.as_ref().filter(|_| number != self.tail)?;
            let dead_bytes = SLOTS - volume.live;
            let number = u32::try_from(number).unwrap();
            Some(Candidate { number, bytes: SLOTS, dead_bytes, move_bytes: volume.live })
        });
        let Some(victim) =
            choose(candidates, SLOTS, Self::thresholds().dead_share_min(self.free()))
        else {
            return false;
        };
        let objects = self.volumes[victim.number as usize].as_ref().unwrap().objects.clone();
        let mut moved = 0;
        for (slot, object) in (0..).zip(objects) {
            if self.locations[object as usize] != (victim.number, slot) {
                continue;
            }
            self.write(object);
            self.moved += 1;
            moved += 1;
            let earned = self.free() + victim.earned(SLOTS, moved);
            let frees = victim.dead_bytes as f64 / victim.move_bytes as f64;
            self.credit += frees * Self::thresholds().writes_per_freed_byte(earned);
            while self.credit >= 1.0 && self.free() > 0 {
                self.credit -= 1.0;
                self.user += 1;
                let object = draw();
                self.write(object);
            }
        }
        self.volumes[victim.number as usize] = None;
        true
    }

    /// Overwrites objects and returns the bytes written per byte stored.
    fn run(&mut self, overwrites: u64, draw: &mut dyn FnMut() -> u32) -> f64 {
        (self.user, self.moved) = (0, 0);
        while self.user < overwrites {
            if self.free() < Self::thresholds().relaxed && self.compact(draw) {
                continue;
            }
            if self.free() == 0 {
                self.stalls += 1;
                assert!(self.stalls < 10, "there is free space, but writers do not get it");
            }
            self.user += 1;
            let object = draw();
            self.write(object);
        }
        (self.user + self.moved) as f64 / self.user as f64
    }
}

/// Random ranks with a Zipf distribution of exponent 0.99; the cumulative weights.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(objects: usize) -> Self {
        let mut sum = 0.0;
        let weight = |rank: usize| {
            sum += (rank as f64).powf(-0.99);
            sum
        };
        Self((1..=objects).map(weight).collect())
    }

    fn draw(&self, random: &mut Random) -> usize {
        let unit = (random.number() >> 11) as f64 / (1_u64 << 53) as f64;
        let at = unit * self.0.last().unwrap();
        self.0.partition_point(|sum| *sum < at).min(self.0.len() - 1)
    }
}

#[test]
fn overwriting_ten_times_the_space_reaches_a_steady_state() {
    for (live_percent, amplification_max) in [(60, 4.0), (75, 4.0), (85, 7.0)] {
        for is_zipf in [false, true] {
            let seed = haul_testing::seed();
            let mut random = Random(seed);
            let mut simulation = Simulation::new(live_percent);
            let objects = simulation.locations.len();
            let zipf = Zipf::new(objects);
            // Ranks are spread over the objects, so that hot objects are not adjacent.
            let spread = |rank: usize| u32::try_from((rank * 7919) % objects).unwrap();
            let mut draw = || match is_zipf {
                true => spread(zipf.draw(&mut random)),
                false => u32::try_from(random.below(objects as u64)).unwrap(),
            };
            let times = |n: u64| n * (VOLUMES - RESERVE) * SLOTS;
            simulation.run(times(2), &mut draw);
            let amplification = simulation.run(times(8), &mut draw);
            let what = format!("SEED={seed}: {live_percent} % live, Zipf {is_zipf}");
            assert!(amplification < amplification_max, "{what}: {amplification}");
            assert_eq!(simulation.stalls, 0, "{what}");
        }
    }
}
