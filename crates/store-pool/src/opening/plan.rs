//! Decides which of some directories form a pool, before any of them is opened. Pure.

use crate::table::{PoolFile, Table};

/// What a directory contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing, or the directory does not exist.
    Nothing,
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
            Self::Nothing | Self::Store | Self::Member(_) => None,
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
    /// `true` if a member has an older table, or the table changes.
    pub(crate) must_write: bool,
}

/// Returns the use of the directories.
///
/// # Errors
/// The reason why they do not form a pool, and advice.
pub(crate) fn plan(dirs: &[(&str, Found)]) -> Result<Plan, String> {
    if dirs.is_empty() {
        return Err("a store needs at least one directory".to_owned());
    }
    if let [(_, Found::Nothing | Found::Store)] = dirs {
        return Ok(Plan::Single);
    }
    let Some(table) = newest_table(dirs)? else { return begin(dirs) };
    let mut plan = OpenPlan {
        members: Vec::new(),
        joining: Vec::new(),
        left: Vec::new(),
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
        plan.joining = others;
    } else {
        let lost = plan.table.members.iter().zip(&members).filter(|(_, found)| found.is_none());
        let lost: Vec<&str> = lost.map(|(entry, _)| &*entry.dir).collect();
        let is_foreign =
            |(dir, found): &&(&str, Found)| *found == Found::Store && !lost.contains(dir);
        if let Some((dir, _)) = others.iter().map(|index| &dirs[*index]).find(is_foreign) {
            return Err(format!(
                "{dir} has a store that does not belong to the pool, of which a member is missing; \
                 add it when all members are there"
            ));
        }
    }
    let missing = |position: usize| {
        let last = &plan.table.members[position].dir;
        why_missing(dirs, &others_of(&plan, dirs), last)
    };
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
                None => {
                    return Err(format!(
                        "{dir} is no longer a member of the pool; empty the directory to add it"
                    ));
                }
            },
            _ => others.push(index),
        }
    }
    Ok((members, others))
}

/// Returns the directories that have no member and do not join.
fn others_of<'a>(plan: &OpenPlan, dirs: &'a [(&'a str, Found)]) -> Vec<&'a (&'a str, Found)> {
    let is_other = |(index, (_, found)): &(usize, &(&str, Found))| {
        !plan.joining.contains(index) && !matches!(found, Found::Member(_))
    };
    dirs.iter().enumerate().filter(is_other).map(|(_, dir)| dir).collect()
}

/// Returns the reason why the member that was last open in `last` is missing.
fn why_missing(dirs: &[(&str, Found)], others: &[&(&str, Found)], last: &str) -> String {
    match others.iter().find(|(dir, _)| *dir == last) {
        Some((_, Found::Store)) => {
            "it has a store, but lost the files that say to which pool it belongs".to_owned()
        }
        Some((_, found)) => {
            let empty = "the directory is empty: its disk may not be mounted";
            found.why_unusable().unwrap_or(empty).to_owned()
        }
        None if dirs.iter().any(|(dir, _)| *dir == last) => {
            "the directory now has another member".to_owned()
        }
        None => "no directory that was given has it".to_owned(),
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
fn member_in(table: &Table, file: &PoolFile) -> Option<usize> {
    let own = file.table.member(file.own)?;
    let is_own =
        |member: &crate::table::MemberEntry| (member.number, member.id) == (own.number, own.id);
    (file.table.pool == table.pool).then(|| table.members.iter().position(is_own))?
}

/// Chooses the first member of a new pool: the directory with a store, or the first one.
fn begin(dirs: &[(&str, Found)]) -> Result<Plan, String> {
    let mut unusable = dirs.iter().map(|(dir, found)| Some((dir, found.why_unusable()?)));
    if let Some((dir, why)) = unusable.find_map(|it| it) {
        return Err(format!("{dir} cannot be used: {why}"));
    }
    let first = dirs.iter().position(|(_, found)| matches!(found, Found::Store));
    Ok(Plan::Begin { first: first.unwrap_or(0) })
}
