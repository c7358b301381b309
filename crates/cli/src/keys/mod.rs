//! `haul keys`: creates, changes and lists the keys of a server.

mod file;
mod policies;
mod remaining;
mod show;

use std::path::Path;
use std::time::SystemTime;

use haul_s3_server::{Grant, Key, KeyList, Rights, Scope};
use serde_json::json;

use crate::args::{
    Allowed, KeyFileArgs, KeysArgs, KeysCommand, KeysCreateArgs, KeysRightsArgs, KeysRotateArgs,
    KeysSetArgs, ServerRights, parse_allow,
};
use crate::clock::rfc3339;
use crate::output::{Output, print_line};
use crate::report::{Failure, OrFail, Result, print_message};
use crate::secrets::{encryption_keys, key_file};

use file::{EFFECT, read, update, usage};
use remaining::remaining;
use show::ANONYMOUS;

pub(crate) fn run(args: &KeysArgs) -> Result {
    let files = &args.files;
    match &args.command {
        KeysCommand::Init => init(files),
        KeysCommand::Create(args) => create(files, args),
        KeysCommand::List => list(files),
        KeysCommand::Show { key } => show(files, key),
        KeysCommand::Allow(args) => allow(files, args),
        KeysCommand::Forbid(args) => forbid(files, args),
        KeysCommand::Set(args) => set_quota(files, args),
        KeysCommand::Policy { command } => policies::run(files, command),
        KeysCommand::Group { command } => policies::run_group(files, command),
        KeysCommand::Disable(args) => set_disabled(files, &args.key, true),
        KeysCommand::Enable(args) => set_disabled(files, &args.key, false),
        KeysCommand::Remove(args) => remove(files, &args.key),
        KeysCommand::Rotate(args) => rotate(files, args),
        KeysCommand::AddEncryptionKey { file, name } => {
            add_encryption_key(file, name.as_deref(), files.json)
        }
    }
}

fn init(files: &KeyFileArgs) -> Result {
    let is_new = key_file::create(&files.keys, &files.sealing_key)?;
    let (keys, seal) = (files.keys.display().to_string(), files.sealing_key.display().to_string());
    if files.json {
        let object = json!({ "keys": keys, "sealing_key": seal, "sealing_key_created": is_new });
        return print_line(object);
    }
    let seal_state = if is_new { "created" } else { "existing" };
    print_line(format!("created {keys}, sealed by the {seal_state} key in {seal}"))?;
    if is_new {
        print_message("keep a copy of the sealing key: without it, the key file cannot be read");
    }
    Ok(())
}

fn add_encryption_key(file: &Path, name: Option<&str>, is_json: bool) -> Result {
    let (key, is_new) = encryption_keys::add(file, name)?;
    let (id, file) = (key.id(), file.display().to_string());
    if is_json {
        let mut object = json!({ "encryption_key": id, "file": file, "file_created": is_new });
        if let Some(name) = name {
            object["name"] = name.into();
        }
        return print_line(object);
    }
    let name = name.map(|name| format!(" {name}")).unwrap_or_default();
    print_line(format!("added the encryption key{name} with the ID {id} to {file}"))?;
    print_message("keep a copy of the file: without their key, objects cannot be read");
    if !is_new {
        print_message("restart the server to use the new key");
    }
    Ok(())
}

fn create(files: &KeyFileArgs, args: &KeysCreateArgs) -> Result {
    let now = SystemTime::now();
    let expires = match args.expires_in {
        Some(time) => Some(after(now, time, "--expires-in")?),
        None => None,
    };
    let mut allow = args.allow.clone();
    for bucket in &args.buckets {
        allow
            .push(parse_allow(&format!("admin={bucket}")).map_err(|why| usage(Failure::new(why)))?);
    }
    if let Some(file) = args.output.as_deref().filter(|file| file.exists()) {
        return Err(usage(Failure::new(format!(
            "{} exists: use another --output",
            file.display()
        ))));
    }
    let key = update(files, |list| {
        let cannot = || format!("cannot create a key of {}", args.user);
        let key = list.create(&args.user, now).or_fail(cannot).map_err(usage)?;
        key.expires = expires;
        for allowed in &allow {
            apply(key, allowed)?;
        }
        let key = key.clone();
        let quota = args.quota.applied_to(list.quota(&args.user));
        list.set_quota(&args.user, quota).or_fail(cannot).map_err(usage)?;
        Ok(key)
    })?;
    match &args.output {
        Some(file) => write_secret(file, &key),
        None => print_secret(files, &key),
    }
}

/// Returns a key pair in the form of a file for `--credentials`.
fn credentials(key: &Key) -> String {
    let (user, rights) = (&key.user, show::rights(key));
    let Key { access_key, secret_key, .. } = key;
    format!("# {user}: {rights}\naccess_key = {access_key}\nsecret_key = {secret_key}\n")
}

/// Writes a new key pair to a file that only its owner can read.
fn write_secret(file: &Path, key: &Key) -> Result {
    let name = file.display();
    let cannot = || format!("cannot write the new key {} to {name}", key.access_key);
    key_file::write_new(file, &credentials(key)).or_fail(cannot).map_err(|failure| {
        failure.advise("remove the key, and create another one: its secret key is lost")
    })?;
    print_line(format!("wrote the access key {} and its secret key to {name}", key.access_key))?;
    print_message(EFFECT);
    Ok(())
}

/// Prints a new key pair, in the form of a file for `--credentials`.
fn print_secret(files: &KeyFileArgs, key: &Key) -> Result {
    if files.json {
        let mut object = show::json(key, SystemTime::now());
        object["secret_key"] = key.secret_key.as_str().into();
        print_line(object)?;
    } else {
        let mut output = Output::new();
        output.bytes(credentials(key).as_bytes())?;
        output.finish()?;
    }
    print_message(&format!("the secret key is not shown again; {EFFECT}"));
    Ok(())
}

fn list(files: &KeyFileArgs) -> Result {
    let (list, now) = (read(files)?, SystemTime::now());
    let mut output = Output::new();
    for key in list.keys() {
        match files.json {
            true => output.line(show::json(key, now))?,
            false => output.line(show::line(key, now))?,
        }
    }
    if !list.anonymous().is_empty() {
        match files.json {
            true => output.line(show::anonymous_json(list.anonymous()))?,
            false => output.line(show::anonymous_line(list.anonymous()))?,
        }
    }
    for (user, quota) in list.quotas() {
        match files.json {
            true => output.line(show::quota_json(user, *quota))?,
            false => output.line(show::quota_line(user, *quota))?,
        }
    }
    output.finish()
}

fn show(files: &KeyFileArgs, name: &str) -> Result {
    let (mut list, now) = (read(files)?, SystemTime::now());
    if name == ANONYMOUS {
        return match files.json {
            true => print_line(show::anonymous_json(list.anonymous())),
            false => print_line(show::anonymous_line(list.anonymous())),
        };
    }
    let key = find(&mut list, name)?.clone();
    let quota = list.quota(&key.user);
    let policies: Vec<_> = list.policies().names_for_user(&key.user).into_iter().collect();
    if files.json {
        let mut object = show::json(&key, now);
        if quota.is_limited() {
            object["quota"] = show::limits_json(quota);
        }
        if !policies.is_empty() {
            object["policies"] = policies.into();
        }
        return print_line(object);
    }
    let mut text = show::text(&key, now);
    if quota.is_limited() {
        text += &format!("\nquota       {}", show::limits(quota));
    }
    if !policies.is_empty() {
        text += &format!("\npolicies    {}", policies.join(", "));
    }
    print_line(text)
}

fn set_quota(files: &KeyFileArgs, args: &KeysSetArgs) -> Result {
    let user = &args.user;
    if args.quota.is_empty() {
        let failure = Failure::new(format!("nothing to set for {user}"));
        return Err(usage(failure.advise("give --quota or --quota-objects")));
    }
    let quota = update(files, |list| {
        let before = list.quota(user);
        let is_known = before.is_limited() || list.keys().iter().any(|key| key.user == *user);
        if !is_known {
            let failure = Failure::new(format!("there is no user {user}"));
            return Err(failure.advise("\"haul keys list\" lists the users of keys"));
        }
        let quota = args.quota.applied_to(before);
        list.set_quota(user, quota).or_fail(|| format!("cannot limit {user}")).map_err(usage)?;
        Ok(quota)
    })?;
    match files.json {
        true => print_line(show::quota_json(user, quota))?,
        false => print_line(show::quota_line(user, quota))?,
    }
    print_message("running servers apply the quota within a few seconds");
    Ok(())
}

fn allow(files: &KeyFileArgs, args: &KeysRightsArgs) -> Result {
    let allowed = scoped(args)?;
    let text = update(files, |list| match (&allowed, args.key.as_str()) {
        (Allowed::Objects(scope, rights), ANONYMOUS) => {
            let cannot = || format!("cannot allow {ANONYMOUS} {rights}");
            list.allow_anonymous(scope.clone(), *rights).or_fail(cannot).map_err(usage)?;
            Ok(show::anonymous_line(list.anonymous()))
        }
        (Allowed::Server(_), ANONYMOUS) => Err(usage(no_server_rights())),
        (_, name) => {
            let key = find(list, name)?;
            apply(key, &allowed)?;
            Ok(show::line(key, SystemTime::now()))
        }
    })?;
    changed(files, &args.key, "allowed", &text)
}

fn forbid(files: &KeyFileArgs, args: &KeysRightsArgs) -> Result {
    match scoped(args)? {
        Allowed::Objects(scope, rights) => forbid_objects(files, &args.key, &scope, rights),
        Allowed::Server(rights) => forbid_server(files, &args.key, rights),
    }
}

/// Removes rights to objects, and reports the grants that still give them.
fn forbid_objects(files: &KeyFileArgs, name: &str, scope: &Scope, rights: Rights) -> Result {
    let mut unchanged: Option<Vec<Grant>> = None;
    let updated = update(files, |list| {
        let (is_removed, grants, held, text) = if name == ANONYMOUS {
            let is_removed = list.forbid_anonymous(scope, rights);
            let grants = list.anonymous();
            (is_removed, grants, show::anonymous_rights(grants), show::anonymous_line(grants))
        } else {
            let key = find(list, name)?;
            let is_removed = key.forbid(scope, rights);
            (is_removed, &*key.grants, show::rights(key), show::line(key, SystemTime::now()))
        };
        let grants = remaining(grants, scope, rights);
        if is_removed {
            return Ok((grants, text));
        }
        let failure = nothing_to_remove(name, scope, rights, &grants, &held);
        unchanged = Some(grants);
        Err(failure)
    });
    if let (true, Some(grants)) = (files.json, &unchanged) {
        print_line(show::forbidden_json(name, false, grants))?;
    }
    let (grants, text) = updated?;
    match files.json {
        true => print_line(show::forbidden_json(name, true, &grants))?,
        false => print_line(format!("forbidden: {text}"))?,
    }
    remaining::lines(&grants, rights).iter().for_each(|line| print_message(line));
    print_message(EFFECT);
    Ok(())
}

/// Returns the failure of a removal that would change nothing.
fn nothing_to_remove(
    name: &str,
    scope: &Scope,
    rights: Rights,
    remaining: &[Grant],
    held: &str,
) -> Failure {
    if remaining.is_empty() {
        return nothing_held(name, held);
    }
    let why = format!("{name} has no grant of {rights} within {scope}: nothing was changed");
    let lines = remaining::lines(remaining, rights);
    lines.into_iter().fold(Failure::new(why), Failure::advise)
}

/// Removes rights without a bucket.
fn forbid_server(files: &KeyFileArgs, name: &str, rights: ServerRights) -> Result {
    if name == ANONYMOUS {
        return Err(usage(no_server_rights()));
    }
    let mut is_unchanged = false;
    let updated = update(files, |list| {
        let key = find(list, name)?;
        let had = (key.creates_buckets, key.reads_metrics);
        key.creates_buckets &= !rights.create_buckets;
        key.reads_metrics &= !rights.metrics;
        is_unchanged = had == (key.creates_buckets, key.reads_metrics);
        match is_unchanged {
            true => Err(nothing_held(name, &show::rights(key))),
            false => Ok(show::line(key, SystemTime::now())),
        }
    });
    if files.json && (is_unchanged || updated.is_ok()) {
        print_line(show::forbidden_json(name, !is_unchanged, &[]))?;
    }
    let text = updated?;
    if !files.json {
        print_line(format!("forbidden: {text}"))?;
    }
    print_message(EFFECT);
    Ok(())
}

fn nothing_held(name: &str, held: &str) -> Failure {
    Failure::new(format!("{name} has no such rights")).advise(format!("its rights: {held}"))
}

fn set_disabled(files: &KeyFileArgs, name: &str, is_disabled: bool) -> Result {
    let text = update(files, |list| {
        let key = find(list, name)?;
        key.is_disabled = is_disabled;
        Ok(show::line(key, SystemTime::now()))
    })?;
    changed(files, name, if is_disabled { "disabled" } else { "enabled" }, &text)
}

fn remove(files: &KeyFileArgs, name: &str) -> Result {
    let text = update(files, |list| {
        let text = show::line(find(list, name)?, SystemTime::now());
        list.remove(name);
        Ok(text)
    })?;
    changed(files, name, "removed", &text)
}

fn rotate(files: &KeyFileArgs, args: &KeysRotateArgs) -> Result {
    let now = SystemTime::now();
    let end = after(now, args.overlap, "--overlap")?;
    let (new, end) = update(files, |list| {
        let earlier = find(list, &args.key)?;
        check_accepted(earlier, now)?;
        // A key that expires sooner is not extended.
        let end = earlier.expires.map_or(end, |expires| expires.min(end));
        let Key { user, creates_buckets, reads_metrics, grants, expires, .. } = earlier.clone();
        earlier.expires = Some(end);
        let cannot = || format!("cannot create a key of {user}");
        let new = list.create(&user, now).or_fail(cannot)?;
        (new.creates_buckets, new.reads_metrics) = (creates_buckets, reads_metrics);
        (new.grants, new.expires) = (grants, expires);
        Ok((new.clone(), end))
    })?;
    print_message(&format!("{} is accepted until {}", args.key, rfc3339(end)));
    print_secret(files, &new)
}

/// Fails if a key is refused: a new key with its rights would be accepted.
fn check_accepted(key: &Key, now: SystemTime) -> Result {
    let Key { access_key, user, .. } = key;
    let create = format!("\"haul keys create {user}\" creates a new key");
    match key.expires {
        Some(expires) if expires <= now => {
            let text = format!("{access_key} expired at {}: nothing was changed", rfc3339(expires));
            Err(Failure::new(text).advise(create))
        }
        _ if key.is_disabled => {
            let failure = Failure::new(format!("{access_key} is disabled: nothing was changed"));
            let enable = format!("\"haul keys enable {access_key}\" enables it");
            Err(failure.advise(format!("{enable}, and {create}")))
        }
        _ => Ok(()),
    }
}

/// Prints the result of a change.
fn changed(files: &KeyFileArgs, name: &str, action: &str, text: &str) -> Result {
    match files.json {
        true => print_line(json!({ "access_key": name, "change": action }))?,
        false => print_line(format!("{action}: {text}"))?,
    }
    print_message(EFFECT);
    Ok(())
}

/// Returns the rights and the objects that a command line names.
fn scoped(args: &KeysRightsArgs) -> Result<Allowed> {
    args.rights.to(args.scope.as_deref()).map_err(|why| usage(Failure::new(why)))
}

fn apply(key: &mut Key, allowed: &Allowed) -> Result {
    match allowed {
        Allowed::Objects(scope, rights) => {
            let cannot = || format!("cannot allow {rights}");
            key.allow(scope.clone(), *rights).or_fail(cannot).map_err(usage)
        }
        Allowed::Server(ServerRights { create_buckets, metrics }) => {
            key.creates_buckets |= create_buckets;
            key.reads_metrics |= metrics;
            Ok(())
        }
    }
}

fn find<'a>(list: &'a mut KeyList, name: &str) -> Result<&'a mut Key> {
    let missing = || {
        let failure = Failure::new(format!("there is no key {name}"));
        failure.advise("\"haul keys list\" lists the access keys")
    };
    list.key_mut(name).ok_or_else(missing)
}

fn after(now: SystemTime, time: std::time::Duration, option: &str) -> Result<SystemTime> {
    let too_long = || usage(Failure::new(format!("{option} is too long")));
    now.checked_add(time).ok_or_else(too_long)
}

fn no_server_rights() -> Failure {
    Failure::new("requests without a signature can have the rights read and list only")
}
