//! Calls for many keys: a group for each member, all at once.

use std::thread;

use haul_file_store::{Deletion, Error, NewObject, Result, Store};

use crate::member::Member;
use crate::moves::move_key_for_write;
use crate::shared::Shared;

/// An item of a call for many keys.
pub(crate) trait Keyed: Copy + Sync {
    fn key(&self) -> &str;
}

impl Keyed for Deletion<'_> {
    fn key(&self) -> &str {
        self.key
    }
}

impl Keyed for NewObject<'_> {
    fn key(&self) -> &str {
        self.key
    }
}

/// Calls `work` in each member with the items of its keys, all members at once, and returns the
/// results in the order of the items. While slots are moved, first moves their keys.
pub(crate) fn in_groups<I: Keyed, T: Send>(
    members: &[Member],
    shared: Option<&Shared>,
    bucket: &str,
    items: &[I],
    work: impl Fn(&Store, Vec<I>) -> Vec<Result<T>> + Sync,
) -> Vec<Result<T>> {
    let Some(shared) = shared else {
        return match members[0].store() {
            Ok(store) => work(store, items.to_vec()),
            Err(error) => items.iter().map(|_| Err(repeated(&error))).collect(),
        };
    };
    let routes = shared.routes.read();
    let mut results: Vec<Option<Result<T>>> = items.iter().map(|_| None).collect();
    let mut groups: Vec<(usize, Vec<usize>)> =
        (0..members.len()).map(|member| (member, Vec::new())).collect();
    for (number, item) in items.iter().enumerate() {
        let route = routes.route(bucket, item.key());
        let to = &members[route.to];
        let moved =
            route.from.map(|from| move_key_for_write(&members[from], to, bucket, item.key()));
        match moved {
            Some(Err(error)) => results[number] = Some(Err(error)),
            Some(Ok(_)) | None => groups[route.to].1.push(number),
        }
    }
    groups.retain(|(_, group)| !group.is_empty());
    let work = |member: usize, group: &[usize]| {
        let chosen = || group.iter().map(|number| items[*number]).collect();
        let done = members[member].write(|store| Ok(work(store, chosen())));
        done.unwrap_or_else(|error| group.iter().map(|_| Err(repeated(&error))).collect())
    };
    let mut place = |group: &[usize], done: Vec<Result<T>>| {
        for (number, result) in group.iter().zip(done) {
            results[*number] = Some(result);
        }
    };
    // This thread works for the last group.
    let own = groups.pop();
    thread::scope(|scope| {
        let work = &work;
        let others: Vec<_> = groups
            .iter()
            .map(|(member, group)| scope.spawn(move || work(*member, group)))
            .collect();
        if let Some((member, group)) = &own {
            place(group, work(*member, group));
        }
        for ((_, group), other) in groups.iter().zip(others) {
            if let Ok(done) = other.join() {
                place(group, done);
            }
        }
    });
    let unknown = || Err(Error::Stopped { what: "a thread of the pool panicked" });
    results.into_iter().map(|result| result.unwrap_or_else(unknown)).collect()
}

/// Returns the error of a member for another item.
fn repeated(error: &Error) -> Error {
    match error {
        Error::MemberMissing { dir, why } => {
            Error::MemberMissing { dir: dir.clone(), why: why.clone() }
        }
        Error::MemberStalled { dir, calls, longest } => {
            Error::MemberStalled { dir: dir.clone(), calls: *calls, longest: *longest }
        }
        _ => Error::Stopped { what: "a member of the pool failed" },
    }
}
