//! Renewing leases by name, and saying until when they run.

use serde::{Deserialize, Serialize};

use crate::engine::Heartbeat;
use crate::names::{AgentName, ShownPath};
use crate::numbers::{Attempt, LeaseTime, RecordKey};
use crate::service::find::{dir_of, path_of, record};
use crate::service::import::is_of_the_store;
use crate::service::{Caller, Exit, Failure, HeartbeatArgs, Service};
use crate::store::{Read, Record};

/// A lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseInfo {
    /// The record.
    pub id: String,
    /// Where it lies; none while its name is a backup's.
    pub path: Option<ShownPath>,
    /// Whose it is.
    pub owner: Option<AgentName>,
    /// The fencing token.
    pub attempt: Attempt,
    /// Until when it runs at least, RFC 3339.
    pub until: String,
}

/// See [`crate::service::Request::Heartbeat`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatReport {
    /// What was renewed.
    pub leases: Vec<LeaseInfo>,
}

impl HeartbeatReport {
    /// One line a lease.
    #[must_use]
    pub fn human(&self) -> String {
        let line = |lease: &LeaseInfo| {
            let path = lease.path.as_ref().map(ToString::to_string);
            format!("{} until {}", path.as_ref().unwrap_or(&lease.id), lease.until)
        };
        self.leases.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        if self.leases.is_empty() { Exit::Nothing } else { Exit::Done }
    }
}

/// A moment of the lease clock as the wall clock would show it now.
pub(in crate::service) fn shown(service: &Service, until: LeaseTime) -> String {
    let engine = &service.engine;
    engine.lease_clock().shown(until, engine.now()).rfc3339_seconds()
}

/// Until when a record's lease runs at least, if it has one.
pub(super) fn lease_until(
    service: &Service,
    read: &dyn Read,
    record: RecordKey,
) -> Result<Option<String>, Failure> {
    let ends = service.engine.ends();
    let runs = read.lease(record)?.filter(|row| row.runs() && !ends.has(row));
    Ok(runs.map(|row| shown(service, service.engine.lease_clock().end_of(&row))))
}

/// Renews the lease of one record, or all leases of the caller.
///
/// # Errors
/// [`Exit::Nothing`] if the caller has none; a record that nobody has a lease of, or that is somebody
/// else's.
pub(in crate::service) fn heartbeat(
    service: &Service,
    caller: &Caller,
    args: &HeartbeatArgs,
) -> Result<HeartbeatReport, Failure> {
    let config = service.engine.config();
    let keys = service.read(|read| {
        if let Some(what) = &args.what {
            return Ok(vec![record((service, read), &config, caller, what)?.record.key]);
        }
        let mut own = Vec::new();
        read.leases(&mut |(row, owner)| {
            if owner == caller.name {
                own.push(row.record);
            }
            true
        })?;
        let mut in_sight = Vec::new();
        for key in own {
            let Some(record) = read.record(key)? else { continue };
            let dir = dir_of(read, &record)?;
            in_sight.extend(dir.is_some_and(|dir| caller.part.has(&dir)).then_some(key));
        }
        Ok(in_sight)
    })?;
    if keys.is_empty() {
        let reason = format!("nothing to renew: {} has no record with a lease", caller.name);
        let remedy = match caller.is_bound {
            true => "claim one first",
            false => "claim one first, or say with --agent whose they are",
        };
        return Err(Failure::new(Exit::Nothing, reason, remedy));
    }
    let (mut leases, mut first) = (Vec::new(), None);
    for key in keys {
        let until = match service.engine.run(caller.context(), Heartbeat { record: key }) {
            Ok(until) => until,
            // What failed for want of the store fails for the next, too.
            Err(refusal) if is_of_the_store(&refusal) => {
                return Err(refusal.into());
            }
            // Its others are renewed all the same.
            Err(refusal) => {
                first.get_or_insert(refusal);
                continue;
            }
        };
        let told = service.read(|read| {
            let Some(record) = read.record(key)? else { return Ok(None) };
            let path = path_of(read, &record)?.map(|path| caller.part.show(&path));
            let Record { id, owner, attempt, .. } = record;
            let until = shown(service, until);
            Ok(Some(LeaseInfo { id: id.to_string(), path, owner, attempt, until }))
        })?;
        leases.extend(told);
    }
    match first {
        Some(refusal) => Err(refusal.into()),
        None => Ok(HeartbeatReport { leases }),
    }
}
