//! The table of a pool: its members, and the slots of each. Pure.
//!
//! Each member has a copy in its file `POOL`, whose text `FORMAT.md` describes.

use crate::slots::{SLOTS, Slot};

/// The first line of a file.
const TITLE: &str = "haul pool 1";

/// The states of a member.
const STAYING: &str = "stays";
const LEAVING: &str = "leaves";

/// The greatest number of a member.
pub(crate) const MEMBER_MAX: u16 = 9_999;

/// The state of a pool that all members know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    /// The pool's ID.
    pub(crate) pool: u128,
    /// The key of the hash that assigns keys to slots: the ID that the pool had first. A pool that
    /// was restored from its copies has another ID.
    pub(crate) hash_key: u128,
    /// The number of changes of the table. The newest table counts.
    pub(crate) generation: u64,
    /// The members, in the order in which they joined: by number.
    pub(crate) members: Vec<MemberEntry>,
    /// The number of the next member. A number is never given again, because a copy may still exist
    /// under the number of a member that has left.
    pub(crate) next: u16,
    /// The slots.
    pub(crate) slots: Vec<Slot>,
}

/// A member, as the table describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemberEntry {
    /// The number, which no other member has.
    pub(crate) number: u16,
    /// The ID, by which a directory is recognized wherever it is mounted.
    pub(crate) id: u128,
    /// The directory in which it was last open, for messages.
    pub(crate) dir: String,
    /// A position that the member's log has reached. A member whose log ends before it is an older
    /// copy.
    pub(crate) log_end: u64,
    /// `true` for a member that leaves the pool: it gets no slots.
    pub(crate) is_leaving: bool,
}

/// The content of a member's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PoolFile {
    /// The number of the member that has the file.
    pub(crate) own: u16,
    pub(crate) table: Table,
}

impl Table {
    /// Returns the table of a pool with one member, which has all slots.
    pub(crate) fn with_one_member(pool: u128, id: u128, dir: String) -> Self {
        let first = MemberEntry { number: 0, id, dir, log_end: 0, is_leaving: false };
        let slots = vec![Slot { member: 0, from: None }; SLOTS];
        Self { pool, hash_key: pool, generation: 1, members: vec![first], next: 1, slots }
    }

    pub(crate) fn member(&self, number: u16) -> Option<&MemberEntry> {
        self.members.iter().find(|member| member.number == number)
    }

    /// Returns `true` if `entry` of another table describes a member of this one.
    pub(crate) fn has_member(&self, entry: &MemberEntry) -> bool {
        self.member(entry.number).is_some_and(|member| member.id == entry.id)
    }

    /// Adds a member without slots. Its number is the next one or a greater one.
    pub(crate) fn add(&mut self, number: u16, id: u128, dir: String) {
        self.members.push(MemberEntry { number, id, dir, log_end: 0, is_leaving: false });
        self.next = number + 1;
    }

    /// Returns the number that follows the greatest number of a member.
    fn after_last(&self) -> u16 {
        self.members.last().map_or(0, |last| last.number.saturating_add(1))
    }

    /// Returns `true` if keys may be stored in a member.
    pub(crate) fn has_slots(&self, number: u16) -> bool {
        self.slots.iter().any(|slot| slot.member == number || slot.from == Some(number))
    }

    /// Returns `true` while keys are being moved.
    pub(crate) fn has_moves(&self) -> bool {
        self.slots.iter().any(|slot| slot.from.is_some())
    }

    /// Ends the move of all slots.
    pub(crate) fn end_moves(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.from = None);
    }

    /// Returns the number of slots whose keys are being moved, or will be.
    pub(crate) fn slots_to_move(&self) -> u64 {
        let leaves = |number: u16| self.member(number).is_some_and(|member| member.is_leaving);
        let must_move = |slot: &&Slot| slot.from.is_some() || leaves(slot.member);
        self.slots.iter().filter(must_move).count() as u64
    }

    /// Returns the owner of each slot.
    pub(crate) fn owners(&self) -> Vec<u16> {
        self.slots.iter().map(|slot| slot.member).collect()
    }
}

impl PoolFile {
    /// Returns the file's text.
    pub(crate) fn encode(&self) -> String {
        let Self { own, table } = self;
        let mut text = format!("{TITLE}\npool {:032x}\n", table.pool);
        if table.hash_key != table.pool {
            text += &format!("hash {:032x}\n", table.hash_key);
        }
        text += &format!("generation {}\nself {own}\n", table.generation);
        if table.next != table.after_last() {
            text += &format!("next {}\n", table.next);
        }
        for MemberEntry { number, id, dir, log_end, is_leaving } in &table.members {
            let (state, dir) = (if *is_leaving { LEAVING } else { STAYING }, one_line(dir));
            text += &format!("member {number} {id:032x} {log_end:016x} {state} {dir}\n");
        }
        for (first, last, slot) in ranges(&table.slots) {
            text += &format!("slots {first}-{last} {}", slot.member);
            if let Some(from) = slot.from {
                text += &format!(" from {from}");
            }
            text.push('\n');
        }
        text += &format!("crc32c {:08x}\n", haul_crc::crc32c(text.as_bytes()));
        text
    }

    /// Parses a file. Each table has one text.
    ///
    /// # Errors
    /// The violated rule.
    pub(crate) fn decode(text: &str) -> Result<Self, &'static str> {
        let body = text.trim_end_matches('\n').rfind('\n').map_or(0, |end| end + 1);
        let (body, crc) = text.split_at(body);
        if crc != format!("crc32c {:08x}\n", haul_crc::crc32c(body.as_bytes())) {
            return Err("its checksum does not match");
        }
        let mut lines = body.lines();
        let mut line = |name: &str| {
            lines.next().and_then(|line| line.strip_prefix(name)).ok_or("a line is missing")
        };
        if !line(TITLE)?.is_empty() {
            return Err("it is of another version");
        }
        let pool = parse_id(line("pool ")?)?;
        let mut hash_key = pool;
        let mut third = line("")?;
        if let Some(key) = third.strip_prefix("hash ") {
            hash_key = parse_id(key)?;
            third = line("")?;
        }
        let generation = third.strip_prefix("generation ").ok_or("a line is missing")?;
        let generation =
            generation.parse().map_err(|_not_a_number| "its generation is no number")?;
        let own =
            line("self ")?.parse().map_err(|_not_a_number| "the number of the member is none")?;
        let mut next = None;
        let (mut members, mut slots) = (Vec::new(), Vec::with_capacity(SLOTS));
        for line in lines {
            match line.split_once(' ') {
                Some(("next", number)) if members.is_empty() && next.is_none() => {
                    let number = number.parse::<u16>();
                    next = Some(number.map_err(|_not_a_number| "the next number is none")?);
                }
                Some(("member", entry)) if slots.is_empty() => members.push(parse_member(entry)?),
                Some(("slots", range)) => parse_slots(range, &mut slots)?,
                _ => return Err("it has an unknown line"),
            }
        }
        let mut table = Table { pool, hash_key, generation, members, next: 0, slots };
        table.next = next.unwrap_or(table.after_last());
        let file = Self { own, table };
        file.check()?;
        // What is written differently was not written by this program.
        if file.encode() != text { Err("it is not as this program writes it") } else { Ok(file) }
    }

    /// Checks the rules that each table follows.
    ///
    /// # Errors
    /// The violated rule.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let Self { own, table } = self;
        let numbers = || table.members.iter().map(|member| member.number);
        if !numbers().is_sorted_by(|one, other| one < other) || numbers().any(|it| it > MEMBER_MAX)
        {
            return Err("the numbers of its members are not in order");
        }
        if table.next < table.after_last() {
            return Err("the number of the next member was given before");
        }
        let is_member = |number: u16| table.member(number).is_some();
        if !is_member(*own) {
            return Err("it does not list the member that has it");
        }
        let mut ids: Vec<u128> = table.members.iter().map(|member| member.id).collect();
        ids.sort_unstable();
        if ids.windows(2).any(|two| two[0] == two[1]) {
            return Err("two of its members have the same ID");
        }
        let is_valid = |slot: &Slot| {
            is_member(slot.member)
                && slot.from.is_none_or(|from| from != slot.member && is_member(from))
        };
        if table.slots.len() != SLOTS || !table.slots.iter().all(is_valid) {
            return Err("its slots do not belong to its members");
        }
        Ok(())
    }
}

/// Returns a path as it is shown in a line of its own.
fn one_line(dir: &str) -> String {
    dir.chars().map(|char| if char.is_control() { '?' } else { char }).collect()
}

/// Returns the first and the last number of each range of equal slots.
fn ranges(slots: &[Slot]) -> impl Iterator<Item = (usize, usize, Slot)> {
    let mut start = 0;
    slots.chunk_by(|one, other| one == other).map(move |range| {
        let first = start;
        start += range.len();
        (first, start - 1, range[0])
    })
}

pub(crate) fn parse_id(text: &str) -> Result<u128, &'static str> {
    u128::from_str_radix(text, 16).map_err(|_not_a_number| "an ID is no number")
}

fn parse_member(entry: &str) -> Result<MemberEntry, &'static str> {
    let mut words = entry.splitn(5, ' ');
    let mut word = || words.next().ok_or("a member is incomplete");
    Ok(MemberEntry {
        number: word()?.parse().map_err(|_not_a_number| "the number of a member is none")?,
        id: parse_id(word()?)?,
        log_end: u64::from_str_radix(word()?, 16)
            .map_err(|_not_a_number| "the end of a log is no number")?,
        is_leaving: match word()? {
            LEAVING => true,
            STAYING => false,
            _ => return Err("the state of a member is unknown"),
        },
        dir: word()?.to_owned(),
    })
}

fn parse_slots(range: &str, slots: &mut Vec<Slot>) -> Result<(), &'static str> {
    const WHY: &str = "a range of slots is malformed";
    let number = |text: &str| text.parse().map_err(|_not_a_number| WHY);
    let (numbers, owner) = range.split_once(' ').ok_or(WHY)?;
    let (first, last) = numbers.split_once('-').ok_or(WHY)?;
    let (first, last): (usize, usize) =
        (first.parse().map_err(|_not_a_number| WHY)?, last.parse().map_err(|_not_a_number| WHY)?);
    if first != slots.len() || last < first || last >= SLOTS {
        return Err(WHY);
    }
    let slot = match owner.split_once(" from ") {
        Some((member, from)) => Slot { member: number(member)?, from: Some(number(from)?) },
        None => Slot { member: number(owner)?, from: None },
    };
    slots.resize(last + 1, slot);
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The example in `FORMAT.md`.
    const EXAMPLE: &str = "\
haul pool 1
pool 000102030405060708090a0b0c0d0e0f
generation 5
self 1
member 0 10101010101010101010101010101010 0000000300001000 leaves /mnt/d1
member 1 11111111111111111111111111111111 0000000200000000 stays /mnt/d2
slots 0-2047 0
slots 2048-2730 1
slots 2731-4095 1 from 0
crc32c c2cc6456
";

    fn example() -> PoolFile {
        let member = |number: u16, id, dir: &str, log_end| MemberEntry {
            number,
            id,
            dir: dir.to_owned(),
            log_end,
            is_leaving: number == 0,
        };
        let slot = |number| match number {
            0..2048 => Slot { member: 0, from: None },
            2048..2731 => Slot { member: 1, from: None },
            _ => Slot { member: 1, from: Some(0) },
        };
        let table = Table {
            pool: 0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f,
            hash_key: 0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f,
            generation: 5,
            members: vec![
                member(0, u128::from_be_bytes([0x10; 16]), "/mnt/d1", 0x3_0000_1000),
                member(1, u128::from_be_bytes([0x11; 16]), "/mnt/d2", 0x2_0000_0000),
            ],
            next: 2,
            slots: (0..SLOTS).map(slot).collect(),
        };
        PoolFile { own: 1, table }
    }

    #[test]
    fn example_of_the_format_is_exact() {
        assert_eq!(example().encode(), EXAMPLE);
        assert_eq!(PoolFile::decode(EXAMPLE), Ok(example()));
        let page = include_str!("../FORMAT.md");
        assert!(page.contains(EXAMPLE), "FORMAT.md has another example");
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        for at in 0..EXAMPLE.len() {
            let mut bytes = EXAMPLE.as_bytes().to_vec();
            bytes[at] ^= 1;
            let text = String::from_utf8(bytes).unwrap();
            assert!(PoolFile::decode(&text).is_err(), "{text}");
            assert!(PoolFile::decode(&EXAMPLE[..at]).is_err(), "{at} bytes");
        }
    }

    /// Returns a text with a correct checksum.
    fn sealed(body: &str) -> String {
        format!("{body}crc32c {:08x}\n", haul_crc::crc32c(body.as_bytes()))
    }

    #[test]
    fn number_of_a_member_that_left_is_not_given_again() {
        let body = &EXAMPLE[..EXAMPLE.rfind("crc32c").unwrap()];
        let text = sealed(&body.replacen("self 1\n", "self 1\nnext 7\n", 1));
        let read = PoolFile::decode(&text).unwrap();
        assert_eq!((read.table.next, read.encode()), (7, text));
    }

    #[test]
    fn restored_pool_has_another_id_than_the_key_of_its_hash() {
        let body = &EXAMPLE[..EXAMPLE.rfind("crc32c").unwrap()];
        let line = format!("hash {:032x}\ngeneration 5", 7);
        let text = sealed(&body.replacen("generation 5", &line, 1));
        let read = PoolFile::decode(&text).unwrap();
        assert_eq!((read.table.hash_key, read.encode()), (7, text));
    }

    #[test]
    fn table_that_makes_no_sense_is_refused() {
        let body = &EXAMPLE[..EXAMPLE.rfind("crc32c").unwrap()];
        assert_eq!(PoolFile::decode(&sealed(body)), Ok(example()));
        for (from, to) in [
            ("pool 1", "pool 2"),
            ("self 1", "self 2"),
            ("self 1", "self 01"),
            ("generation 5", "hash 000102030405060708090a0b0c0d0e0f\ngeneration 5"),
            ("generation 5", "hash 7\ngeneration 5"),
            ("self 1", "self 1\nnext 1"),
            ("self 1", "self 1\nnext 2"),
            ("member 0", "member 1"),
            ("11111111111111111111111111111111", "10101010101010101010101010101010"),
            ("1 from 0", "1 from 1"),
            ("1 from 0", "1 from 2"),
            ("2731-4095", "2732-4095"),
            ("2731-4095", "2731-4094"),
            ("2731-4095", "2731-99999999999"),
            ("slots 0-2047 0\n", "slots 0-1000 0\nslots 1001-2047 0\n"),
            ("slots 0-2047", "slot 0-2047"),
        ] {
            let text = sealed(&body.replacen(from, to, 1));
            assert!(PoolFile::decode(&text).is_err(), "{from} -> {to}");
        }
    }

    proptest! {
        #[test]
        fn any_table_reads_back(
            slots in prop::collection::vec((0_u16..3, prop::option::of(0_u16..3)), SLOTS),
            dir in "\\PC{1,40}",
            log_end: u64,
        ) {
            let mut file = example();
            file.table.add(2, 5, dir);
            file.table.members[2].log_end = log_end;
            file.table.slots = slots
                .into_iter()
                .map(|(member, from)| Slot { member, from: from.filter(|from| *from != member) })
                .collect();
            prop_assert_eq!(PoolFile::decode(&file.encode()), Ok(file));
        }

        #[test]
        fn no_text_causes_a_panic(text in "[a-z0-9 \n-]{0,200}") {
            prop_assert!(PoolFile::decode(&text).is_err());
            prop_assert!(PoolFile::decode(&sealed(&text)).is_err());
        }
    }
}
