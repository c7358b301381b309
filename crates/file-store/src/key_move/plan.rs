//! Compares what two stores have under a key: what the other store lacks, and how the newest version
//! of both becomes its current one. Pure.

use std::collections::{BTreeMap, BTreeSet};

use haul_append_log::Position;

use crate::clock::Version;
use crate::index::entry::Entry;
use crate::index::version_rows::VersionRow;
use crate::key_move::state::{HeldUpload, HeldVersion, KeyState};

/// What must be stored in the other store.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) uploads: Vec<MissingUpload>,
    /// Versions that do not become the newest one, from newest to oldest.
    pub(super) versions: Vec<HeldVersion>,
    /// The last step, which makes the newest version of both stores the current one.
    pub(super) last: LastStep,
}

/// The parts of an upload that the other store lacks, or has in an earlier state.
#[derive(Debug)]
pub(super) struct MissingUpload {
    pub(super) id: u128,
    /// The needle that starts the upload, if the other store lacks it.
    pub(super) start: Option<(Version, Option<Position>)>,
    pub(super) parts: Vec<(u16, Entry)>,
}

/// The changes with which a key gets its newest version.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LastStep {
    /// The newest version, if it must be stored.
    pub(super) newest: Option<Newest>,
    /// The current object of the other store, if it is not the newest version, and whether it must
    /// be stored as an older version: it is superseded, or stored like that already, if not.
    pub(super) demoted: Option<(HeldVersion, bool)>,
    /// Older versions of the other store that are superseded: a key has one version `null`.
    pub(super) superseded: Vec<HeldVersion>,
}

/// The newest version, and the store that has it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Newest {
    /// The store from which the key is moved.
    Here(HeldVersion),
    /// The other store, as an older version.
    There(HeldVersion),
}

impl Plan {
    pub(super) fn is_empty(&self) -> bool {
        self.uploads.is_empty() && self.versions.is_empty() && self.last.is_empty()
    }
}

impl LastStep {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns what `to` lacks of the state in `from`. If both have a version, that of `to` counts.
pub(super) fn plan(from: &KeyState, to: &KeyState) -> Plan {
    let uploads = from.uploads.iter();
    let uploads = uploads.filter_map(|(id, held)| missing_upload(*id, held, to.uploads.get(id)));
    let (versions, last) = missing_versions(&from.versions, to);
    Plan { uploads: uploads.collect(), versions, last }
}

fn missing_upload(id: u128, from: &HeldUpload, to: Option<&HeldUpload>) -> Option<MissingUpload> {
    let is_missing = |(number, part): &(&u16, &Entry)| {
        let held = to.and_then(|to| to.parts.get(number));
        held.is_none_or(|held| held.version < part.version)
    };
    let parts = from.parts.iter().filter(is_missing);
    let parts: Vec<_> = parts.map(|(number, part)| (*number, part.clone())).collect();
    let start = to.is_none().then_some((from.started, from.at));
    (start.is_some() || !parts.is_empty()).then_some(MissingUpload { id, start, parts })
}

fn missing_versions(from: &[HeldVersion], to: &KeyState) -> (Vec<HeldVersion>, LastStep) {
    let there = &to.versions;
    let ids: BTreeSet<Version> = there.iter().filter(|it| !it.name.is_null).map(version).collect();
    let null = newest_null(there);
    let is_missing = |held: &&HeldVersion| match held.name.is_null {
        true => null < Some(held.name.version),
        false => !ids.contains(&held.name.version),
    };
    let mut missing: Vec<HeldVersion> = from.iter().filter(is_missing).cloned().collect();
    let null = null.max(newest_null(&missing));
    let is_superseded = |held: &HeldVersion| held.name.is_null && Some(held.name.version) < null;
    missing.retain(|held| !is_superseded(held));

    let stays = there.iter().filter(|held| !is_superseded(held));
    let newest_there = stays.max_by_key(|held| held.name.version);
    let newest_here = (0..missing.len()).max_by_key(|number| missing[*number].name.version);
    let is_newer = |here: &usize| Some(missing[*here].name.version) > newest_there.map(version);
    let (newest, current) = match (newest_here.filter(is_newer), newest_there) {
        (Some(here), _) => (Some(Newest::Here(missing.remove(here))), None),
        (None, Some(there)) if there.is_current => (None, Some(there)),
        // A delete marker is never current.
        (None, Some(there)) if there.is_delete_marker() => (None, None),
        (None, Some(there)) => (Some(Newest::There(there.clone())), None),
        (None, None) => (None, None),
    };
    let demoted = there.iter().find(|held| held.is_current && Some(*held) != current);
    let is_retained = |held: &HeldVersion| !is_superseded(held) && to.copy.is_none();
    let mut superseded: Vec<HeldVersion> =
        there.iter().filter(|held| !held.is_current && is_superseded(held)).cloned().collect();
    if let (Some(copy), true) = (&to.copy, demoted.is_some_and(is_superseded)) {
        let VersionRow { name, entry } = copy.clone();
        superseded.push(HeldVersion { name, entry, is_current: false });
    }
    let demoted = demoted.map(|held| (held.clone(), is_retained(held)));
    (missing, LastStep { newest, demoted, superseded })
}

fn version(held: &HeldVersion) -> Version {
    held.name.version
}

fn newest_null(versions: &[HeldVersion]) -> Option<Version> {
    versions.iter().filter(|held| held.name.is_null).map(version).max()
}

/// Returns the entries of the versions that both stores have: in `from`, and in `to`.
pub(super) fn common<'a>(
    from: &'a KeyState,
    to: &'a KeyState,
) -> impl Iterator<Item = (&'a Entry, &'a Entry)> {
    let name = |held: &HeldVersion| (held.name.version, held.name.is_null);
    let here: BTreeMap<_, _> = from.versions.iter().map(|held| (name(held), &held.entry)).collect();
    let there = to.versions.iter();
    there.filter_map(move |held| Some((*here.get(&name(held))?, &held.entry)))
}

#[cfg(test)]
mod tests {
    use haul_append_log::Lsn;

    use super::*;
    use crate::index::version_names::VersionName;
    use crate::object::Etag;

    /// A version: its number, and its kind.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    enum Kind {
        Object,
        Marker,
        Null,
        NullMarker,
    }
    use Kind::{Marker, Null, NullMarker, Object};

    fn held(version: u64, kind: Kind, is_current: bool) -> HeldVersion {
        let is_null = matches!(kind, Null | NullMarker);
        let is_marker = matches!(kind, Marker | NullMarker);
        let position =
            Position { lsn: Lsn::new(1, 8 * u32::try_from(version).unwrap()), payload_bytes: 1 };
        let (version, md5) = (Version(version), [u8::from(!is_marker); 16]);
        let entry = Entry {
            version,
            at: position,
            bytes: 0,
            etag: Etag { md5, parts: 0 },
            is_versioned: !is_null,
            files: Box::default(),
        };
        HeldVersion { name: VersionName { version, is_null }, entry, is_current }
    }

    /// Returns a state with these versions, from newest to oldest. The newest is current if it is an
    /// object and `has_current`.
    fn state(versions: &[(u64, Kind)], has_current: bool) -> KeyState {
        let is_object = |kind| matches!(kind, Object | Null);
        let versions = versions.iter().enumerate();
        let versions = versions.map(|(number, (version, kind))| {
            held(*version, *kind, has_current && number == 0 && is_object(*kind))
        });
        KeyState { versions: versions.collect(), ..KeyState::default() }
    }

    /// Applies a plan to a state.
    fn apply(plan: Plan, to: KeyState) -> Vec<HeldVersion> {
        let Plan { versions, last: LastStep { newest, demoted, superseded }, .. } = plan;
        let mut after: Vec<HeldVersion> = to.versions;
        after.retain(|held| !superseded.contains(held));
        if let Some((demoted, is_retained)) = demoted {
            after.retain(|held| *held != demoted);
            after.extend(is_retained.then_some(HeldVersion { is_current: false, ..demoted }));
        }
        after.extend(versions.into_iter().map(|held| HeldVersion { is_current: false, ..held }));
        match newest {
            Some(Newest::Here(held)) => {
                let is_current = !held.is_delete_marker();
                after.push(HeldVersion { is_current, ..held });
            }
            Some(Newest::There(held)) => {
                after.retain(|other| *other != held);
                after.push(HeldVersion { is_current: true, ..held });
            }
            None => {}
        }
        after.sort_by_key(|held| std::cmp::Reverse(held.name.version));
        after
    }

    /// All prefixes, suffixes and other parts of a state that a crash, or a change between two calls,
    /// may leave, in all combinations.
    #[test]
    fn every_two_states_are_united_with_the_newest_version_current() {
        let all = [(6, Object), (5, Marker), (4, Null), (3, NullMarker), (2, Object), (1, Null)];
        let part = |mask: u32| -> Vec<(u64, Kind)> {
            let chosen = all.iter().enumerate().filter(|(bit, _)| mask & (1 << bit) != 0);
            chosen.map(|(_, version)| *version).collect()
        };
        let nulls = |part: &[(u64, Kind)]| {
            part.iter().filter(|(_, kind)| matches!(kind, Null | NullMarker)).count()
        };
        let is_state = |part: &Vec<(u64, Kind)>| nulls(part) <= 1;
        let states: Vec<_> = (0..64).map(part).filter(is_state).collect();
        let mut checked = 0;
        for (from, to) in states.iter().flat_map(|from| states.iter().map(move |to| (from, to))) {
            // A move that was interrupted leaves older versions without a current object.
            for has_current in [true, false] {
                let mut union: Vec<_> = from.iter().chain(to).copied().collect();
                union.sort_unstable_by(|one, other| other.cmp(one));
                union.dedup();
                let mut has_null = false;
                union.retain(|(_, kind)| {
                    !matches!(kind, Null | NullMarker) || !std::mem::replace(&mut has_null, true)
                });
                let (here, there) = (state(from, true), state(to, has_current));
                let after = apply(plan(&here, &there), there);
                let expected = state(&union, true).versions;
                assert_eq!(after, expected, "{from:?} to {to:?}, {has_current}");
                let moved = KeyState { versions: after, ..KeyState::default() };
                assert!(plan(&here, &moved).is_empty(), "a repeated move changes nothing");
                checked += 1;
            }
        }
        assert!(checked > 2000, "{checked} pairs");
    }

    #[test]
    fn copy_of_a_superseded_object_is_removed_and_that_of_a_retained_one_stays() {
        let with_copy = |kind| {
            let mut to = state(&[(1, kind)], true);
            let HeldVersion { name, entry, .. } = held(1, kind, false);
            to.copy = Some(VersionRow { name, entry });
            to
        };
        let superseding = plan(&state(&[(2, Null)], true), &with_copy(Null)).last;
        assert_eq!(superseding.superseded, [held(1, Null, false)]);
        assert_eq!(superseding.demoted, Some((held(1, Null, true), false)));
        let retaining = plan(&state(&[(2, Object)], true), &with_copy(Object)).last;
        assert_eq!(retaining.superseded, []);
        assert_eq!(retaining.demoted, Some((held(1, Object, true), false)), "it is stored already");
    }

    #[test]
    fn newer_part_replaces_an_older_one_and_not_the_reverse() {
        let upload = |parts: &[(u16, u64)]| {
            let part =
                |(number, version): &(u16, u64)| (*number, held(*version, Null, false).entry);
            let parts = parts.iter().map(part).collect();
            let upload = HeldUpload { started: Version(1), at: None, parts };
            KeyState { uploads: BTreeMap::from([(7, upload)]), ..KeyState::default() }
        };
        let missing = |from: &[(u16, u64)], to: &[(u16, u64)]| -> Vec<Vec<u16>> {
            let uploads = plan(&upload(from), &upload(to)).uploads;
            uploads.iter().map(|it| it.parts.iter().map(|(number, _)| *number).collect()).collect()
        };
        assert_eq!(missing(&[(1, 5), (2, 5), (3, 5)], &[(1, 4), (2, 6), (3, 5)]), [[1]]);
        assert_eq!(missing(&[(1, 5)], &[(1, 5), (2, 6)]), Vec::<Vec<u16>>::new());
        assert_eq!(missing(&[(1, 5), (2, 5)], &[(1, 5)]), [[2]]);
        let alone = plan(&upload(&[]), &KeyState::default()).uploads;
        assert_eq!(alone.len(), 1);
        assert!(alone[0].start.is_some());
    }
}
