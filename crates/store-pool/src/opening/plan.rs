//! Decides which of some directories form a pool, before any of them is opened. Pure.

use crate::table::{PoolFile, Table};

/// What a directory contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// The directory does not exist.
    Absent,
    /// Nothing.
    Nothing,
    /// Files of another program, one of which has this name.
    Foreign(String),
    /// A store, or parts of one, without a pool file.
    Store,
    /// A store with a pool file.
    Member(PoolFile),
    /// Parts of a member that was being restored from its copy, alone or with the whole pool.
    Refilling,
    /// It cannot be read, for this reason.
    Unreadable(String),
}

/// The reason why a directory with [`Found::Refilling`] cannot be used.
const REFILLING: &str = "its restore was interrupted; restore it again, or empty it";

impl Found {
    /// Returns the reason why the directory can neither be used as it is nor join.
    fn why_unusable(&self) -> Option<&str> {
        match self {
            Self::Refilling => Some(REFILLING),
            Self::Unreadable(why) => Some(why),
            _ => None,
        }
    }

    /// Returns the reason why the directory of a member does not have it.
    fn why_missing(&self) -> String {
        const NOT_MOUNTED: &str = "its disk may not be mounted";
        match self {
            Self::Absent => "the directory does not exist".to_owned(),
            Self::Nothing => format!("the directory is empty: {NOT_MOUNTED}"),
            Self::Foreign(name) => format!("the directory has other files ({name}): {NOT_MOUNTED}"),
            Self::Store => {
                "it has a store, but lost the files that say to which pool it belongs".to_owned()
            }
            Self::Member(_) => "the directory now has another member".to_owned(),
            Self::Refilling => REFILLING.to_owned(),
            Self::Unreadable(why) => why.clone(),
        }
    }
}

/// The use of the directories, by their index.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// The only directory is a store of its own.
    Single,
    /// No directory belongs to a pool: the one at this index becomes its first member, and the
    /// others join.
    Begin { first: usize },
    /// A pool exists.
    Open(OpenPlan),
}

/// The use of the directories for a pool that exists.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OpenPlan {
    pub(crate) table: Table,
    /// The index of the directory of each of the table's members, or the reason why it is missing.
    pub(crate) members: Vec<Result<usize, String>>,
    /// The indexes of the directories that join.
    pub(crate) joining: Vec<usize>,
    /// The indexes of the directories of members that have left.
    pub(crate) left: Vec<usize>,
    /// The indexes of the directories that do not join, because a member is missing: its disk may be
    /// meant. Nothing is written to them.
    pub(crate) waiting: Vec<usize>,
    /// `true` if a member has an older table, or the table changes.
    pub(crate) must_write: bool,
}

/// Returns the use of the directories. `may_join` is `false` if none may be added to a store that
/// exists.
///
/// # Errors
/// The reason why they do not form a pool, and advice.
pub(crate) fn plan(dirs: &[(&str, Found)], may_join: bool) -> Result<Plan, String> {
    if dirs.is_empty() {
        return Err("a store needs at least one directory".to_owned());
    }
    if let [(_, Found::Absent | Found::Nothing | Found::Foreign(_) | Found::Store)] = dirs {
        return Ok(Plan::Single);
    }
    let Some(table) = newest_table(dirs)? else { return begin(dirs, may_join) };
    let mut plan = OpenPlan {
        members: Vec::new(),
        joining: Vec::new(),
        left: Vec::new(),
        waiting: Vec::new(),
        must_write: false,
        table,
    };
    let (members, others) = sort(dirs, &mut plan)?;
    let is_whole = members.iter().all(Option::is_some);
    if is_whole {
        let mut unusable = others.iter().map(|index| &dirs[*index]);
        if let Some((dir, why)) = unusable.find_map(|(dir, it)| Some((dir, it.why_unusable()?))) {
            return Err(format!("{dir} cannot join the pool: {why}"));
        }
        for (dir, found) in others.iter().map(|index| &dirs[*index]) {
            check_joining(dir, found, may_join)?;
        }
        plan.joining = others;
    } else {
        let lost = plan.table.members.iter().zip(&members).filter(|(_, found)| found.is_none());
        let lost: Vec<&str> = lost.map(|(entry, _)| &*entry.dir).collect();
        for index in others.into_iter().filter(|index| !lost.contains(&dirs[*index].0)) {
            match &dirs[index] {
                (dir, Found::Store) => {
                    return Err(format!(
                        "{dir} has a store that does not belong to the pool, of which a member is \
                         missing; add it when all members are there"
                    ));
                }
                (dir, Found::Foreign(name)) => {
                    return Err(format!(
                        "{dir} is not empty (it contains {name}), and has no member of the pool"
                    ));
                }
                _ => plan.waiting.push(index),
            }
        }
    }
    let missing = |position: usize| why_missing(dirs, &plan.table.members[position].dir);
    plan.members = (0..members.len())
        .map(|position| members[position].ok_or_else(|| missing(position)))
        .collect();
    if plan.members.iter().all(Result::is_err) {
        return Err("none of the directories has a member of the pool with keys".to_owned());
    }
    Ok(Plan::Open(plan))
}

/// Finds the directory of each member, by its index, and the directories that have no member.
/// Records in `plan` which have left.
fn sort(
    dirs: &[(&str, Found)],
    plan: &mut OpenPlan,
) -> Result<(Vec<Option<usize>>, Vec<usize>), String> {
    let mut members = vec![None; plan.table.members.len()];
    let mut others = Vec::new();
    for (index, (dir, found)) in dirs.iter().enumerate() {
        match found {
            Found::Member(file) => match member_in(&plan.table, file) {
                Some(position) => {
                    plan.must_write |= file.table.generation != plan.table.generation;
                    if let Some(other) = members[position].replace(index) {
                        let other = dirs[other].0;
                        return Err(format!("{other} and {dir} are copies of the same member"));
                    }
                }
                None if file.table.member(file.own).is_some_and(|own| own.is_leaving) => {
                    plan.left.push(index);
                }
                // It was joining when the pool was last open, and has nothing.
                None if !file.table.has_slots(file.own) => others.push(index),
                None if plan.table.members.iter().any(|entry| file.table.has_member(entry)) => {
                    return Err(format!(
                        "{dir} is no longer a member of the pool: its keys were given up, or \
                         restored elsewhere; start without it, or empty it to add it again"
                    ));
                }
                None => {
                    return Err(format!(
                        "{dir} and other directories went on without each other; start either \
                         without the other"
                    ));
                }
            },
            _ => others.push(index),
        }
    }
    Ok((members, others))
}

/// Returns the reason why the member that was last open in `last` is missing.
fn why_missing(dirs: &[(&str, Found)], last: &str) -> String {
    let at_last = || dirs.iter().filter(|(dir, _)| *dir == last);
    let found = at_last().find(|(_, found)| !matches!(found, Found::Member(_)));
    let found = found.or_else(|| at_last().next());
    let not_given = || "no directory that was given has it".to_owned();
    found.map_or_else(not_given, |(_, found)| found.why_missing())
}

/// Checks that a directory may be added to a store that exists.
fn check_joining(dir: &str, found: &Found, may_join: bool) -> Result<(), String> {
    match found {
        _ if !may_join => Err(format!("{dir} is not in the store; only a server adds it")),
        // A mistyped path must not become a part of the store.
        Found::Absent => Err(format!("{dir} does not exist; create it to add it to the store")),
        _ => Ok(()),
    }
}

/// Returns the newest table with the greatest known positions of all members.
fn newest_table(dirs: &[(&str, Found)]) -> Result<Option<Table>, String> {
    let files = dirs.iter().filter_map(|(dir, found)| match found {
        // A directory without slots was joining, and may never have joined.
        Found::Member(file) if file.table.has_slots(file.own) => Some((*dir, file)),
        _ => None,
    });
    let files: Vec<(&str, &PoolFile)> = files.collect();
    let Some((dir, newest)) = files.iter().max_by_key(|(_, file)| file.table.generation) else {
        return Ok(None);
    };
    let mut table = newest.table.clone();
    for (other, file) in &files {
        if file.table.pool != table.pool {
            return Err(format!("{dir} and {other} are members of different pools"));
        }
        for member in &mut table.members {
            let known = file.table.member(member.number).filter(|known| known.id == member.id);
            member.log_end = member.log_end.max(known.map_or(0, |known| known.log_end));
        }
    }
    Ok(Some(table))
}

/// Returns the position of the member that has `file`.
pub(crate) fn member_in(table: &Table, file: &PoolFile) -> Option<usize> {
    let position = table.members.iter().position(|member| member.number == file.own)?;
    let is_own = file.table.pool == table.pool && file.table.has_member(&table.members[position]);
    is_own.then_some(position)
}

/// Chooses the first member of a new pool: the directory with a store, or the first one.
fn begin(dirs: &[(&str, Found)], may_join: bool) -> Result<Plan, String> {
    let mut unusable = dirs.iter().map(|(dir, found)| Some((dir, found.why_unusable()?)));
    if let Some((dir, why)) = unusable.find_map(|it| it) {
        return Err(format!("{dir} cannot be used: {why}"));
    }
    // A new pool would answer that all keys of the members that are not there are absent.
    let has_left = |found: &Found| matches!(found, Found::Member(_));
    if let Some((dir, _)) = dirs.iter().find(|(_, found)| has_left(found)) {
        return Err(format!(
            "{dir} has no keys of its pool, and no directory that was given has them; give the \
             other directories, too, or empty {dir} to begin with it"
        ));
    }
    let first = dirs.iter().position(|(_, found)| matches!(found, Found::Store));
    if let Some(first) = first {
        for (_, (dir, found)) in dirs.iter().enumerate().filter(|(index, _)| *index != first) {
            check_joining(dir, found, may_join)?;
        }
    }
    Ok(Plan::Begin { first: first.unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what the member with a number has, of a pool of three whose first member has left.
    fn member(number: u16) -> Found {
        let mut table = Table::with_one_member(1, 1, "d0".to_owned());
        for number in 1..3 {
            table.add(number, u128::from(number) + 1, format!("d{number}"));
        }
        for (number, slot) in table.slots.iter_mut().enumerate() {
            slot.member = if number % 2 == 0 { 1 } else { 2 };
        }
        table.members[0].is_leaving = true;
        Found::Member(PoolFile { own: number, table })
    }

    fn refusal(dirs: &[(&str, Found)], may_join: bool) -> String {
        plan(dirs, may_join).unwrap_err()
    }

    #[test]
    fn member_that_has_left_does_not_begin_a_new_pool() {
        for others in [&[][..], &[("d1", Found::Nothing)], &[("d1", Found::Store)]] {
            let dirs = [&[("d0", member(0))], others].concat();
            let why = refusal(&dirs, true);
            assert!(why.contains("d0 has no keys of its pool"), "{why}");
        }
    }

    #[test]
    fn directory_joins_only_if_it_exists_and_may() {
        let whole = [("d0", member(0)), ("d1", member(1)), ("d2", member(2))];
        let with = |found: Found| [&whole[..], &[("new", found)]].concat();
        let joins = |planned: Plan| matches!(planned, Plan::Open(open) if open.joining == [3]);
        assert!(joins(plan(&with(Found::Nothing), true).unwrap()));
        assert!(refusal(&with(Found::Absent), true).contains("new does not exist; create it"));
        assert!(refusal(&with(Found::Nothing), false).contains("new is not in the store"));
        // The same for a store that is no pool yet; a new store has no directories.
        let store = |found| [("d0", Found::Store), ("new", found)];
        assert_eq!(plan(&store(Found::Nothing), true), Ok(Plan::Begin { first: 0 }));
        assert!(refusal(&store(Found::Absent), true).contains("new does not exist"));
        assert!(refusal(&store(Found::Nothing), false).contains("new is not in the store"));
        let new = [("d0", Found::Absent), ("d1", Found::Nothing)];
        assert_eq!(plan(&new, false), Ok(Plan::Begin { first: 0 }));
    }

    #[test]
    fn directories_wait_while_a_member_is_missing() {
        let dirs = |found: Found| [("d0", member(0)), ("d1", member(1)), ("other", found)];
        for found in [Found::Nothing, Found::Absent, Found::Unreadable("x".to_owned())] {
            let Plan::Open(open) = plan(&dirs(found), true).unwrap() else { panic!("not open") };
            assert_eq!((open.waiting, open.joining), (vec![2], vec![]));
        }
        let why = refusal(&dirs(Found::Foreign("passwd".to_owned())), true);
        assert!(why.contains("other is not empty (it contains passwd)"), "{why}");
        assert!(refusal(&dirs(Found::Store), true).contains("other has a store"));
    }

    #[test]
    fn missing_member_has_a_reason() {
        for (found, why) in [
            (Found::Absent, "does not exist"),
            (Found::Nothing, "is empty: its disk may not be mounted"),
            (Found::Foreign("a".to_owned()), "has other files (a): its disk may not be mounted"),
            (Found::Store, "lost the files"),
            (Found::Refilling, "restore was interrupted"),
            (Found::Unreadable("damaged".to_owned()), "damaged"),
        ] {
            let dirs = [("d0", member(0)), ("d1", member(1)), ("d2", found)];
            let Plan::Open(open) = plan(&dirs, true).unwrap() else { panic!("not open") };
            assert!(open.members[2].as_ref().unwrap_err().contains(why), "{:?}", open.members);
            assert_eq!(open.waiting, Vec::<usize>::new());
        }
    }
}
