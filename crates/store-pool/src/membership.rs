//! The file in the copy of a member that says to which pool it belongs: the key of the hash, and the
//! members. Pure.
//!
//! It has no slots, so that it is short, and does not change while keys move. `FORMAT.md` describes
//! its text.

use crate::copies::MembershipFile;
use crate::table::{MEMBER_MAX, Table, parse_id};

/// The first line.
const TITLE: &str = "haul membership 1";

/// The members of a pool, as the copy of one of them describes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Membership {
    /// The key of the hash that assigns keys to slots.
    pub(crate) hash_key: u128,
    /// The generation of a table with these members. Of several copies, the greatest one counts.
    pub(crate) generation: u64,
    /// The number of the member that has the copy.
    pub(crate) own: u16,
    /// The number of the next member.
    pub(crate) next: u16,
    /// The numbers of the members, in ascending order.
    pub(crate) members: Vec<u16>,
}

impl Membership {
    /// Returns what a table says about the member with the number `own`.
    pub(crate) fn new(table: &Table, own: u16) -> Self {
        let members = table.members.iter().map(|member| member.number).collect();
        let (hash_key, generation) = (table.hash_key, table.generation);
        Self { hash_key, generation, own, next: table.next, members }
    }

    /// Returns the file.
    pub(crate) fn to_file(&self) -> MembershipFile {
        MembershipFile { content: self.encode().into_bytes() }
    }

    fn encode(&self) -> String {
        let Self { hash_key, generation, own, next, members } = self;
        let members = members.iter().map(|number| format!(" {number}")).collect::<String>();
        let body = format!(
            "{TITLE}\nhash {hash_key:032x}\ngeneration {generation}\nself {own}\nnext {next}\n\
             members{members}\n"
        );
        format!("{body}crc32c {:08x}\n", haul_crc::crc32c(body.as_bytes()))
    }

    /// Parses a file.
    ///
    /// # Errors
    /// The violated rule.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, &'static str> {
        let text = std::str::from_utf8(bytes).map_err(|_not_utf8| "it is not text")?;
        let mut lines = text.lines();
        let mut line = |name: &str| {
            lines.next().and_then(|line| line.strip_prefix(name)).ok_or("a line is missing")
        };
        if !line(TITLE)?.is_empty() {
            return Err("it is of another version");
        }
        let hash_key = parse_id(line("hash ")?)?;
        let generation =
            line("generation ")?.parse().map_err(|_not_a_number| "its generation is no number")?;
        let own = parse_number(line("self ")?)?;
        let next = parse_number(line("next ")?)?;
        let members = line("members ")?.split(' ').map(parse_number).collect::<Result<_, _>>()?;
        let read = Self { hash_key, generation, own, next, members };
        // Each file has one text, which ends with its checksum.
        match read.encode() == text && read.is_consistent() {
            true => Ok(read),
            false => Err("it is not as this program writes it"),
        }
    }

    fn is_consistent(&self) -> bool {
        let last = self.members.last().copied();
        self.members.is_sorted_by(|one, other| one < other)
            && self.members.contains(&self.own)
            && last.is_some_and(|last| last <= MEMBER_MAX && last < self.next)
    }
}

fn parse_number(text: &str) -> Result<u16, &'static str> {
    text.parse().map_err(|_not_a_number| "the number of a member is none")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example in `FORMAT.md`.
    const EXAMPLE: &str = "\
haul membership 1
hash 000102030405060708090a0b0c0d0e0f
generation 5
self 1
next 4
members 0 1 3
crc32c 57ea86e3
";

    fn example() -> Membership {
        Membership {
            hash_key: 0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f,
            generation: 5,
            own: 1,
            next: 4,
            members: vec![0, 1, 3],
        }
    }

    #[test]
    fn example_of_the_format_is_exact() {
        assert_eq!(example().encode(), EXAMPLE);
        assert_eq!(Membership::decode(EXAMPLE.as_bytes()), Ok(example()));
        let page = include_str!("../FORMAT.md");
        assert!(page.contains(EXAMPLE), "FORMAT.md has another example");
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        for at in 0..EXAMPLE.len() {
            let mut bytes = EXAMPLE.as_bytes().to_vec();
            bytes[at] ^= 1;
            assert!(Membership::decode(&bytes).is_err(), "{at}");
            assert!(Membership::decode(&EXAMPLE.as_bytes()[..at]).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn file_that_makes_no_sense_is_refused() {
        for change in [
            |it: &mut Membership| it.own = 2,
            |it: &mut Membership| it.next = 3,
            |it: &mut Membership| it.members.reverse(),
            |it: &mut Membership| it.members.clear(),
        ] {
            let mut changed = example();
            change(&mut changed);
            assert!(Membership::decode(changed.encode().as_bytes()).is_err(), "{changed:?}");
        }
    }
}
