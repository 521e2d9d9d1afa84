//! Asking the daemon, or the store itself where no daemon serves it.
//!
//! What must stay true: a change is asked for once; only what changes nothing is asked again when
//! a daemon ends under it. Deliberately not here: what is asked.

use std::time::{Duration, Instant};

use super::super::exit::Exit;
use super::super::here::Here;
use super::super::local;
use super::super::output::{Output, Stop};
use super::super::place;
use crate::daemon::{
    self, Answer, Ask, Cause, Client, Failure, HeldWait, LOOK_AGAIN, OpenStore, Patience,
    StorePaths,
};
use crate::limits::{DAEMON_LATE, DAEMON_SILENCE, DAEMON_SILENCE_MAX, HELD_BYTES_MAX};
use crate::names::Shown;
use crate::service::{
    Caller, Effect, Part, Reply, Report, Request, Sink, Whole, dispatch, export, fsck,
};
use crate::store::Readers;

/// What to do where there is no store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Say so.
    Refuse,
    /// Make one.
    Make,
}

/// Asks and prints.
pub fn ask(here: &Here<'_>, request: Request, missing: Missing) -> Result<Exit, Stop> {
    let output = here.output();
    // What they give is known only by what they print, and nobody gives it back.
    if matches!(request, Request::Claim(_) | Request::ProjectNew(_)) {
        output.expect_open(request.properties().name)?;
    }
    let is_log = matches!(request, Request::Log(_));
    let effect = request.properties().effect;
    let follows = effect == Effect::Follows;
    let leaves = matches!(effect, Effect::Changes | Effect::Renews | Effect::Makes);
    let mut exit = Exit::Failed;
    each_reply(here, request, missing, &mut |reply| {
        match reply {
            Reply::Progress { done, total, what } => output.progress(done, total, &what),
            Reply::Line(line) => {
                output.line(&line)?;
                if follows {
                    output.flush()?;
                }
                output.flush_if_watched()?;
            }
            // Whoever watches sees all there is before the next wait.
            Reply::Idle => output.flush()?,
            Reply::Report(report) => {
                exit = report.exit().into();
                if leaves {
                    // Whoever hears of a failure would do it again.
                    tell_done(&report, output)?;
                } else if !is_log {
                    print(&report, output)?;
                }
                if let Some(failure) = report.failure() {
                    return Err(failure.clone().into());
                }
            }
            Reply::Error(failure) => return Err(failure.into()),
            Reply::Part(_) => {}
        }
        Ok(())
    })?;
    Ok(exit)
}

/// Prints the report of what was done; where that fails, its first line says so.
///
/// # Errors
/// What cannot be printed.
pub fn tell_done(report: &Report, output: &Output) -> Result<(), Stop> {
    let first = || report.human().lines().next().unwrap_or_default().to_owned();
    output.of_done(print(report, output), first)
}

/// Prints a report.
pub fn print(report: &Report, output: &Output) -> Result<(), Stop> {
    if output.json {
        return output.value(&report.json());
    }
    let text = report.human();
    match report {
        // Its text is the record's or the file's own.
        Report::Show(_) => output.raw(format!("{text}\n").as_bytes()),
        _ if text.is_empty() => Ok(()),
        _ => output.line(&text),
    }
}

/// Asks and gives each reply to `each`.
pub fn each_reply(
    here: &Here<'_>,
    request: Request,
    missing: Missing,
    each: &mut dyn FnMut(Reply) -> Result<(), Stop>,
) -> Result<(), Stop> {
    asked(here, request, missing, each).map_err(|stop| stop.of(here.paths().store()))
}

fn asked(
    here: &Here<'_>,
    request: Request,
    missing: Missing,
    each: &mut dyn FnMut(Reply) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let request = place::in_tree(here.on_behalf(request)?, here)?;
    let observes = here.observes(&request);
    here.mind_the_transaction(&request)?;
    here.mind_the_mount(&request)?;
    let (paths, part) = (here.paths(), here.part()?);
    let begin = Instant::now();
    let until =
        time_given(&request).and_then(|given| begin.checked_add(given.saturating_add(DAEMON_LATE)));
    let is_late = || until.is_some_and(|until| until <= Instant::now());
    let mut wait = HeldWait::of(paths);
    let asker = if is_long(&request) { Some(patience()?) } else { None };
    loop {
        // What was told in parts before it was asked again counts no more.
        let mut whole = Whole::default();
        let each = &mut |reply| whole.join(reply).map_or(Ok(()), &mut *each);
        let again = if let Some(client) = Client::connect(paths)? {
            request.outside().map_or(Ok(()), |place| client.expect_sees(place))?;
            let ask = Ask::of(&part, observes, request.clone());
            over_socket(client.until(until), (&ask, &request), asker.as_ref(), each)?
        } else {
            if missing == Missing::Refuse && !paths.exists() {
                return Err(no_store(paths));
            }
            // Whoever follows would keep the store from all whose changes it waits for.
            if request.properties().effect == Effect::Follows {
                return Err(ended().into());
            }
            // Before the store's threads start.
            let own = if asker.is_none() { Some(patience()?) } else { None };
            let Some(patience) = asker.as_ref().or(own.as_ref()) else { continue };
            // An import brings its directories; anybody else would find none to work in.
            let bare = matches!(request, Request::Import(..));
            match local::try_open(paths, bare, here.output()) {
                Ok(store) => return in_process(store, paths, (part, request), patience, each),
                // A daemon that just starts or ends, or another command.
                Err(failure) if failure.cause == Cause::Held => Some(failure),
                Err(failure)
                    if failure.cause == Cause::Store
                        && matches!(request, Request::Fsck | Request::Export(_)) =>
                {
                    let store = daemon::open_to_check(paths)?;
                    let why = failure.reason.as_str();
                    return without_engine((&store, why), (&part, &request), patience, each);
                }
                Err(failure) => return Err(failure.into()),
            }
        };
        match again {
            None => return Ok(()),
            Some(failure) if is_late() || !wait.goes_on() => return Err(failure.into()),
            Some(_) => std::thread::sleep(LOOK_AGAIN),
        }
    }
}

/// Whether it may take long, and what was done of it is worth hearing when it is interrupted. Who asks for
/// anything else is ended by the signal, at once.
fn is_long(request: &Request) -> bool {
    use Request::{Backup, Export, Fsck, Gc, Import};
    matches!(request, Import(_) | Export(_) | Backup(_) | Gc(_) | Fsck)
}

/// Gives the failure after which it is worth asking again.
fn over_socket(
    mut client: Client,
    (ask, request): (&Ask, &Request),
    patience: Option<&Patience>,
    each: &mut dyn FnMut(Reply) -> Result<(), Stop>,
) -> Result<Option<Failure>, Stop> {
    let only_tells = matches!(request.properties().effect, Effect::Reads | Effect::Follows);
    let again = |failure: Failure, answered: bool| {
        if failure.cause != Cause::Mount || !only_tells {
            return Err(failure.into());
        }
        if !answered {
            return Ok(Some(failure));
        }
        Err(ended().into())
    };
    let interrupter = patience.map(|_| client.interrupter()).transpose()?;
    let is_over = || patience.is_some_and(Patience::is_over);
    let answers = match client.ask_many(ask, silence(request)) {
        Ok(answers) => answers,
        Err(failure) => return again(failure, false),
    };
    if let (Some(patience), Some(interrupter)) = (patience, interrupter) {
        patience.when_over(|_| interrupter());
    }
    let mut answered = false;
    for answer in answers {
        match answer {
            Ok(Answer::Reply(Reply::Error(failure))) if is_over() => {
                return Err(Stop::from(failure).interrupted());
            }
            Err(failure) if is_over() => return Err(Stop::from(failure).interrupted()),
            Ok(Answer::Reply(Reply::Report(report))) if report.is_cut_short() && is_over() => {
                each(Reply::Report(report))?;
                return Err(Stop::Interrupted);
            }
            Ok(Answer::Reply(reply)) => {
                answered |= !matches!(reply, Reply::Part(_));
                each(reply)?;
            }
            Ok(other) => {
                let reason = format!("the daemon answers with {other:?}");
                return Err(Failure::new(Cause::Mount, reason, "is it of another version?").into());
            }
            Err(failure) => return again(failure, answered),
        }
    }
    Ok(None)
}

/// The failure of what was being told when the daemon ended.
fn ended() -> Failure {
    let remedy = "nothing is lost; `workfs mount` starts it again";
    Failure::new(Cause::Mount, "the daemon ended", remedy)
}

/// From here on Ctrl-C ends this process as soon as that is sound.
pub fn patience() -> Result<Patience, Stop> {
    let patience = Patience::begin(i32::from(Exit::Interrupted.code()))?;
    expect_more(&patience)?;
    Ok(patience)
}

/// Fails if Ctrl-C came before anything was done.
pub fn expect_more(patience: &Patience) -> Result<(), Stop> {
    match patience.is_over() {
        true => Err(Stop::failed(Exit::Interrupted, "interrupted", "nothing was done")),
        false => Ok(()),
    }
}

/// How long a daemon that is well may say nothing about a request. To who follows what happens it
/// says now and then that nothing did; to who waits for a record it says nothing.
fn silence(request: &Request) -> Duration {
    let waits = match request {
        Request::Claim(args) => Duration::from_millis(args.wait_ms.unwrap_or(0)),
        _ => Duration::ZERO,
    };
    DAEMON_SILENCE + waits.min(DAEMON_SILENCE_MAX)
}

/// How long whoever asks wants to wait, where that was said.
fn time_given(request: &Request) -> Option<Duration> {
    match request {
        Request::Claim(args) => args.wait_ms.map(Duration::from_millis),
        // Who gives no time at all wants what there is, however long that takes to read.
        Request::Watch(args) => args.timeout_s.filter(|time| *time > 0).map(Duration::from_secs),
        _ => None,
    }
}

/// Serves the request here. Ctrl-C ends it as soon as that is sound.
fn in_process(
    store: OpenStore,
    paths: &StorePaths,
    (part, request): (Part, Request),
    patience: &Patience,
    each: &mut dyn FnMut(Reply) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let service = store.service(paths);
    let caller = Caller::this_process().seeing(part);
    let only_tells = request.properties().effect == Effect::Reads && !is_long(&request);
    // What is told waits until others can have the store again: who reads it may take all the time, in a pager say.
    let (mut held, mut bytes) = (Vec::new(), 0);
    let mut hold = |reply: Reply| {
        match &reply {
            Reply::Line(line) => bytes += line.len(),
            Reply::Part(_) | Reply::Report(_) | Reply::Error(_) => {}
            Reply::Progress { .. } | Reply::Idle => return each(reply),
        }
        held.push(reply);
        if bytes > HELD_BYTES_MAX { held.drain(..).try_for_each(&mut *each) } else { Ok(()) }
    };
    let result =
        served_here(patience, &mut hold, |sink| dispatch(&service, &caller, request, sink));
    drop(service);
    let failed = result.is_err()
        || match held.last() {
            Some(Reply::Error(_)) => true,
            Some(Reply::Report(report)) => report.failure().is_some(),
            _ => false,
        };
    // One that was made for what failed is nobody's.
    if failed && store.is_as_made() {
        local::discard(store, paths);
    } else {
        local::close(store);
    }
    if only_tells && !patience.is_over() {
        patience.when_over(|_| std::process::exit(i32::from(Exit::Interrupted.code())));
    }
    match (result, held.into_iter().try_for_each(each)) {
        (Err(Stop::Interrupted), Err(stop)) => Err(stop.interrupted()),
        (Err(stop), _) | (Ok(()), Err(stop)) => Err(stop),
        (Ok(()), Ok(())) => Ok(()),
    }
}

/// Checks a store that no engine can be started on, for this reason, or exports what can be read of it.
fn without_engine(
    (store, why): (&dyn Readers, &str),
    (part, request): (&Part, &Request),
    patience: &Patience,
    each: &mut dyn FnMut(Reply) -> Result<(), Stop>,
) -> Result<(), Stop> {
    served_here(patience, each, |sink| {
        let done = match request {
            Request::Export(args) => export((store, None), part, args, sink).map(Report::Export),
            other => part
                .expect_whole(other.properties().name)
                .and_then(|()| fsck(store, None, sink))
                .map(|report| Report::Fsck(report.of_unopened(why))),
        };
        let last = match done {
            Ok(report) => Reply::Report(Box::new(report)),
            Err(failure) => Reply::Error(failure),
        };
        // Whether anybody still hears it does not matter any more.
        let _ = sink(last);
    })
}

/// What `serve` replies in this process goes to `each`, until Ctrl-C.
fn served_here(
    patience: &Patience,
    each: &mut dyn FnMut(Reply) -> Result<(), Stop>,
    serve: impl FnOnce(Sink<'_>),
) -> Result<(), Stop> {
    let mut result = Ok(());
    serve(&mut |reply| {
        let is_end = matches!(reply, Reply::Report(_) | Reply::Error(_));
        // What was done in spite of the signal is told all the same.
        if result.is_ok() && !is_end && patience.is_over() {
            result = Err(Stop::Interrupted);
        }
        if result.is_ok() {
            result = each(reply);
        } else if is_end && matches!(result, Err(Stop::Interrupted)) {
            // How far it came.
            if let Err(stop) = each(reply) {
                result = Err(stop.interrupted());
            }
        }
        result.is_ok()
    });
    result
}

/// The failure of a command that only a daemon can serve.
pub fn no_daemon(paths: &StorePaths) -> Stop {
    let reason = format!("nothing serves {}", paths.store().shown());
    Stop::failed(Exit::Mount, reason, "mount it first: `workfs mount DIR`")
}

/// The failure of a store that is not there.
pub fn no_store(paths: &StorePaths) -> Stop {
    let reason = format!("there is no store {}", paths.store().shown());
    let remedy = "`workfs mount DIR` or `workfs init` makes it; `--store` names another";
    Stop::failed(Exit::Absent, reason, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::WatchArgs;

    #[test]
    fn who_asks_for_the_past_alone_has_all_the_time_that_takes() {
        let given = |timeout_s| {
            time_given(&Request::Watch(WatchArgs { timeout_s, ..WatchArgs::default() }))
        };
        assert_eq!(given(Some(2)), Some(Duration::from_secs(2)));
        assert_eq!((given(Some(0)), given(None)), (None, None));
    }
}
