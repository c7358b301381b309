//! `haul keys policy` and `haul keys group`: the policies of users and groups.

use std::path::Path;

use haul_s3_server::{Group, KeyList, PolicyHolder, PolicyList};
use serde_json::{Value, json};

use crate::args::{AttachArgs, GroupArgs, GroupCommand, KeyFileArgs, PolicyCommand};
use crate::keys::file::{EFFECT, read, update, usage};
use crate::output::{Output, print_line};
use crate::report::{Exit, Failure, OrFail, Result, print_message};

/// The maximum length of a policy's file, in bytes: more than any valid policy has.
const FILE_BYTES_MAX: u64 = 1 << 20;

pub(super) fn run(files: &KeyFileArgs, command: &PolicyCommand) -> Result {
    match command {
        PolicyCommand::Put { name, file } => put(files, name, file),
        PolicyCommand::List => list(files),
        PolicyCommand::Show { name } => show(files, name),
        PolicyCommand::Remove { name } => remove(files, name),
        PolicyCommand::Attach(args) => attach(files, args),
        PolicyCommand::Detach(args) => detach(files, args),
    }
}

pub(super) fn run_group(files: &KeyFileArgs, command: &GroupCommand) -> Result {
    match command {
        GroupCommand::Add(args) => add_to_group(files, args),
        GroupCommand::Remove(args) => remove_from_group(files, args),
        GroupCommand::List { group } => list_groups(files, group.as_deref()),
    }
}

fn put(files: &KeyFileArgs, name: &str, file: &Path) -> Result {
    let cannot = || format!("cannot read the policy in {}", file.display());
    let length = std::fs::metadata(file).or_not_start(cannot)?.len();
    if length > FILE_BYTES_MAX {
        let failure = Failure::new(format!("{}: the file is too long", cannot()));
        return Err(failure.exit(Exit::NotStarted));
    }
    let text = std::fs::read_to_string(file).or_not_start(cannot)?;
    let is_new = update(files, |list| {
        let is_new = list.policies().text(name).is_none();
        let put = list.policies_mut().put(name, &text);
        put.or_fail(|| format!("cannot use the policy in {}", file.display())).map_err(usage)?;
        Ok(is_new)
    })?;
    let action = if is_new { "added" } else { "replaced" };
    changed(files, json!({ "policy": name, "change": action }), &format!("{action}: policy {name}"))
}

fn list(files: &KeyFileArgs) -> Result {
    let keys = read(files)?;
    let policies = keys.policies();
    let mut output = Output::new();
    for (name, text) in policies.texts() {
        match files.json {
            true => output.line(policy_json(policies, name, text))?,
            false => output.line(policy_line(policies, name))?,
        }
    }
    output.finish()
}

fn show(files: &KeyFileArgs, name: &str) -> Result {
    let keys = read(files)?;
    let text = keys.policies().text(name).ok_or_else(|| no_policy(name))?;
    match files.json {
        true => print_line(policy_json(keys.policies(), name, text)),
        false => print_line(text.trim_end()),
    }
}

fn remove(files: &KeyFileArgs, name: &str) -> Result {
    update(files, |list| match list.policies_mut().remove(name) {
        Ok(true) => Ok(()),
        Ok(false) => Err(no_policy(name)),
        Err(error) => {
            let failure = Failure::new(format!("cannot remove the policy {name}: {error}"));
            Err(failure.advise("detach it first: \"haul keys policy detach\""))
        }
    })?;
    changed(
        files,
        json!({ "policy": name, "change": "removed" }),
        &format!("removed: policy {name}"),
    )
}

fn attach(files: &KeyFileArgs, args: &AttachArgs) -> Result {
    let (name, holder) = (&args.name, args.holder());
    update(files, |list| {
        if list.policies().text(name).is_none() {
            return Err(no_policy(name));
        }
        match holder {
            PolicyHolder::User(user) => check_user(list, user)?,
            PolicyHolder::Group(group) => check_group(list, group)?,
        }
        let cannot = || format!("cannot attach the policy {name}");
        list.policies_mut().attach(name, holder).or_fail(cannot).map_err(usage)
    })?;
    attached(files, args, "attached")
}

fn detach(files: &KeyFileArgs, args: &AttachArgs) -> Result {
    let (name, holder) = (&args.name, args.holder());
    update(files, |list| match list.policies_mut().detach(name, holder) {
        true => Ok(()),
        false => {
            let failure = Failure::new(format!("{} does not have the policy {name}", text(holder)));
            Err(failure.advise("\"haul keys policy list\" lists the policies"))
        }
    })?;
    attached(files, args, "detached")
}

/// Fails if no key, group or policy knows the user: the name may be misspelled.
fn check_user(list: &KeyList, user: &str) -> Result {
    let has_key = list.keys().iter().any(|key| key.user == user);
    if has_key || !list.policies().names_for_user(user).is_empty() {
        return Ok(());
    }
    let failure = Failure::new(format!("there is no user {user}"));
    Err(failure.advise("\"haul keys create\" creates a key of a new user"))
}

/// Fails if there is no such group: the name may be misspelled.
fn check_group(list: &KeyList, group: &str) -> Result {
    if list.policies().groups().contains_key(group) {
        return Ok(());
    }
    let advice = format!("add a user to it first: \"haul keys group add {group} USER\"");
    Err(Failure::new(format!("there is no group {group}")).advise(advice))
}

fn add_to_group(files: &KeyFileArgs, args: &GroupArgs) -> Result {
    let GroupArgs { group, users } = args;
    update(files, |list| {
        users.iter().try_for_each(|user| check_user(list, user))?;
        let cannot = || format!("cannot add users to {group}");
        list.policies_mut().add_to_group(group, users).or_fail(cannot).map_err(usage)
    })?;
    group_changed(files, args, "added")
}

fn remove_from_group(files: &KeyFileArgs, args: &GroupArgs) -> Result {
    let GroupArgs { group, users } = args;
    update(files, |list| match list.policies_mut().remove_from_group(group, users) {
        true => Ok(()),
        false => {
            let failure = Failure::new(format!("the group {group} has none of these users"));
            Err(failure.advise("\"haul keys group list\" lists the groups"))
        }
    })?;
    group_changed(files, args, "removed")
}

fn list_groups(files: &KeyFileArgs, wanted: Option<&str>) -> Result {
    let keys = read(files)?;
    let groups = keys.policies().groups();
    if let Some(name) = wanted.filter(|name| !groups.contains_key(*name)) {
        let failure = Failure::new(format!("there is no group {name}"));
        return Err(failure.advise("\"haul keys group list\" lists the groups"));
    }
    let mut output = Output::new();
    for (name, group) in groups.iter().filter(|(name, _)| wanted.is_none_or(|it| it == *name)) {
        let (users, policies) = (names(group.users()), names(group.policies()));
        match files.json {
            true => output.line(group_json(name, group))?,
            false => output.line(format!("{name}: users {users}; policies {policies}"))?,
        }
    }
    output.finish()
}

/// Prints the result of a change.
fn changed(files: &KeyFileArgs, object: Value, line: &str) -> Result {
    match files.json {
        true => print_line(object)?,
        false => print_line(line)?,
    }
    print_message(EFFECT);
    Ok(())
}

fn attached(files: &KeyFileArgs, args: &AttachArgs, action: &str) -> Result {
    let (name, holder) = (&args.name, args.holder());
    let (user, group) = match holder {
        PolicyHolder::User(user) => (Some(user), None),
        PolicyHolder::Group(group) => (None, Some(group)),
    };
    let object = json!({ "policy": name, "change": action, "user": user, "group": group });
    changed(files, object, &format!("{action}: policy {name}, {}", text(holder)))
}

fn group_changed(files: &KeyFileArgs, args: &GroupArgs, action: &str) -> Result {
    let GroupArgs { group, users } = args;
    let object = json!({ "group": group, "change": action, "users": users });
    changed(files, object, &format!("{action}: group {group}, users {}", users.join(", ")))
}

fn text(holder: PolicyHolder<'_>) -> String {
    match holder {
        PolicyHolder::User(user) => format!("user {user}"),
        PolicyHolder::Group(group) => format!("group {group}"),
    }
}

/// Returns the users and the groups that have a policy.
fn holders<'a>(list: &'a PolicyList, name: &str) -> (Vec<&'a str>, Vec<&'a str>) {
    let users = list.users().iter().filter(|(_, policies)| policies.contains(name));
    let has_policy = |group: &Group| group.policies().any(|policy| policy == name);
    let groups = list.groups().iter().filter(|(_, group)| has_policy(group));
    (users.map(|(user, _)| &**user).collect(), groups.map(|(group, _)| &**group).collect())
}

fn policy_line(list: &PolicyList, name: &str) -> String {
    let (users, groups) = holders(list, name);
    format!("{name}: users {}; groups {}", names(users), names(groups))
}

fn policy_json(list: &PolicyList, name: &str, text: &str) -> Value {
    let (users, groups) = holders(list, name);
    json!({ "policy": name, "users": users, "groups": groups, "text": text })
}

fn group_json(name: &str, group: &Group) -> Value {
    let (users, policies): (Vec<_>, Vec<_>) = (group.users().collect(), group.policies().collect());
    json!({ "group": name, "users": users, "policies": policies })
}

fn names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.into_iter().collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn no_policy(name: &str) -> Failure {
    let failure = Failure::new(format!("there is no policy {name}"));
    failure.advise("\"haul keys policy list\" lists the policies")
}
