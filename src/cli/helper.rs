//! The forms in which mount(8) and fstab call us: `mount.fuse.workfs SOURCE DIR -o OPTIONS`, and
//! `workfs SOURCE DIR -o OPTIONS`, which is what `mount.fuse3` makes of it.
//!
//! What must stay true: they become an ordinary `workfs mount`. Deliberately not here: options'
//! meanings.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::exit::Exit;
use super::output::Stop;
use crate::names::Shown;

/// What stands for the source where it is no store.
const UNNAMED: [&[u8]; 2] = [b"none", b"workfs"];

/// The arguments of the subcommand that is meant; `None` if this is an ordinary call.
pub fn translate(arguments: &[OsString]) -> Result<Option<Vec<OsString>>, Stop> {
    translate_for(arguments, rustix::process::geteuid().is_root())
}

fn translate_for(arguments: &[OsString], is_root: bool) -> Result<Option<Vec<OsString>>, Stop> {
    let Some((program, rest)) = arguments.split_first() else { return Ok(None) };
    let name = Path::new(program).file_name().unwrap_or_default().as_bytes();
    let is_helper = name.ends_with(b"mount.fuse.workfs") || name.ends_with(b"mount.workfs");
    let is_source = |text: &OsString| {
        let text = text.as_bytes();
        !text.starts_with(b"-") && (UNNAMED.contains(&text) || text.contains(&b'/'))
    };
    let has_places = rest.len() >= 2 && is_source(&rest[0]);
    if !is_helper && !has_places {
        return Ok(None);
    }
    if rest.iter().any(|argument| argument == "--version") {
        return Ok(None);
    }
    if rest.iter().any(|argument| argument == "--help") {
        return Ok(Some(["workfs", "mount", "--help"].map(OsString::from).to_vec()));
    }
    let usage = |reason: &str| {
        Stop::failed(Exit::Usage, reason, "mount.fuse.workfs SOURCE DIR [-fnsv] [-o OPTIONS]")
    };
    let mut places = Vec::new();
    let mut translated: Vec<OsString> = vec!["workfs".into(), "mount".into()];
    if is_helper && is_root {
        // As mount.fuse3 gives them: mount(8) keeps them to itself, since they are the rule to it.
        translated.extend(["-o".into(), "dev,suid".into()]);
    }
    let mut fake = false;
    let mut rest = rest.iter();
    while let Some(argument) = rest.next() {
        match argument.as_bytes() {
            b"-o" => {
                let options = rest.next().ok_or_else(|| usage("-o needs options"))?;
                translated.extend(["-o".into(), options.clone()]);
            }
            // The type, and the name space: mount(8) has seen to both.
            b"-t" | b"-N" => {
                rest.next().ok_or_else(|| usage("an option lacks its value"))?;
            }
            [b'-', b'o', options @ ..] => {
                translated.extend(["-o".into(), OsStr::from_bytes(options).into()]);
            }
            [b'-', flags @ ..]
                if !flags.is_empty() && flags.iter().all(|f| b"fnsvrw".contains(f)) =>
            {
                fake |= flags.contains(&b'f');
                if flags.contains(&b'r') {
                    translated.extend(["-o".into(), "ro".into()]);
                }
            }
            [b'-', ..] => {
                return Err(usage(&format!("unknown option {}", argument.shown())));
            }
            _ => places.push(argument),
        }
    }
    let [source, dir] = places[..] else {
        return Err(usage("a source (the store) and a directory are needed"));
    };
    if fake {
        translated.push("--fake".into());
    }
    let source = source.as_bytes();
    let source = source.strip_prefix(b"workfs#").unwrap_or(source);
    // What stands where a file system has no source names none.
    if !UNNAMED.contains(&source) {
        translated.extend(["--store".into(), OsString::from_vec(source.to_vec())]);
    }
    translated.push(dir.clone());
    Ok(Some(translated))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(line: &str) -> Option<String> {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let words = translate_for(&arguments, false).ok()?;
        words.map(|words| words.join(OsStr::new(" ")).into_string().unwrap())
    }

    #[test]
    fn the_forms_of_mount_and_fstab_are_a_mount() {
        for (given, meant) in [
            ("/sbin/mount.fuse.workfs /t.db /m -o rw,nosuid", "-o rw,nosuid --store /t.db /m"),
            ("mount.workfs workfs#/t.db /m -n -s", "--store /t.db /m"),
            ("mount.fuse.workfs t.db /m -t fuse.workfs -oro", "-o ro --store t.db /m"),
            ("workfs /t.db /m -o rw", "-o rw --store /t.db /m"),
            ("mount.fuse.workfs none /m -o store=/t.db", "-o store=/t.db /m"),
            ("workfs none /m -o store=/t.db", "-o store=/t.db /m"),
            ("mount.fuse.workfs workfs /m -n", "/m"),
            ("mount.fuse.workfs ./none /m", "--store ./none /m"),
        ] {
            assert_eq!(translated(given), Some(format!("workfs mount {meant}")), "{given}");
        }
        let help = translated("mount.fuse.workfs --help").unwrap();
        assert_eq!(help, "workfs mount --help");
        assert_eq!(translated("workfs mount /m"), None);
        assert_eq!(translated("workfs show work/inbox/x.yaml"), None);
        assert!(translate(&["mount.fuse.workfs".into(), "/t.db".into()]).is_err());
    }

    #[test]
    fn what_the_rule_is_to_mount_is_said_for_root_and_can_be_denied_behind_it() {
        let given = ["mount.fuse.workfs", "/t.db", "/m", "-o", "nosuid"].map(OsString::from);
        let words = translate_for(&given, true).unwrap().unwrap();
        assert_eq!(words[2..6], ["-o", "dev,suid", "-o", "nosuid"].map(OsString::from));
    }
}
