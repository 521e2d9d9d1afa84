//! Durations and sizes as people write them: `30d`, `5m`, `64MiB`.
//!
//! What must stay true: what is shown is read back. Deliberately not here: what is too long or too
//! large for whom.

use std::time::Duration;

/// Units of time, the largest first, in seconds.
const TIMES: &[(&str, u64)] = &[("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];

/// Units of size, the largest first, in bytes.
const SIZES: &[(&str, u64)] =
    &[("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// Reads a number and its unit; `bare` is what it counts without one, where it may lack one.
fn parse(text: &str, units: &[(&str, u64)], bare: Option<u64>, what: &str) -> Result<u64, String> {
    let wrong = || {
        let shown = crate::names::printable_start(text.as_bytes());
        format!("`{shown}` is no {what} are")
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let unit = unit.trim_start();
    let factor = match unit {
        "" => bare,
        unit => units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor),
    };
    let factor = factor.ok_or_else(wrong)?;
    number.checked_mul(factor).filter(|all| i64::try_from(*all).is_ok()).ok_or_else(wrong)
}

/// So many of a thing: `1 record`, `2 directories`.
#[must_use]
pub fn counted(count: impl TryInto<u64>, thing: &str) -> String {
    match (count.try_into().unwrap_or(u64::MAX), thing.strip_suffix('y')) {
        (1, _) => format!("1 {thing}"),
        (count, Some(stem)) => format!("{count} {stem}ies"),
        (count, None) => format!("{count} {thing}s"),
    }
}

/// `30d`, `12h`, `5m`, `90s`.
///
/// # Errors
/// Another form, or more than can be counted.
pub fn duration(text: &str) -> Result<Duration, String> {
    parse(text, TIMES, None, "time: `90s`, `5m`, `4h`, `30d`").map(Duration::from_secs)
}

/// The same on the command line, where a bare number is seconds, as `timeout(1)` has it.
///
/// # Errors
/// As [`duration`].
pub fn patience(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => duration(text),
    }
}

/// The same where a bare number is days, of which there may be more than can be counted.
///
/// # Errors
/// As [`duration`].
pub fn age(text: &str) -> Result<Duration, String> {
    match text.parse::<u64>() {
        Ok(days) => Ok(Duration::from_secs(days.saturating_mul(86_400))),
        Err(_) => duration(text),
    }
}

/// `64MiB`, `1GiB`, `512KiB`, `100B`; a bare number is bytes.
///
/// # Errors
/// Another form, or more than can be counted.
pub fn size(text: &str) -> Result<u64, String> {
    parse(text, SIZES, Some(1), "size: `512KiB`, `64MiB`, `1GiB`, `1000000` (bytes)")
}

fn shown(number: u64, units: &[(&str, u64)]) -> String {
    let fits = |(_, factor): &&(&str, u64)| number >= *factor && number.is_multiple_of(*factor);
    match units.iter().find(fits).or(units.last()) {
        Some((unit, factor)) => format!("{}{unit}", number / factor),
        None => number.to_string(),
    }
}

/// As [`duration`] reads it.
#[must_use]
pub fn shown_duration(duration: Duration) -> String {
    shown(duration.as_secs(), TIMES)
}

/// As [`size`] reads it.
#[must_use]
pub fn shown_size(bytes: u64) -> String {
    shown(bytes, SIZES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for text in ["30d", "12h", "5m", "90s", "0s"] {
            assert_eq!(shown_duration(duration(text).unwrap()), text);
        }
        for text in ["64MiB", "1GiB", "100B", "3TiB", "0B"] {
            assert_eq!(shown_size(size(text).unwrap()), text);
        }
        assert_eq!(shown_duration(duration("48h").unwrap()), "2d");
        assert_eq!(patience("90").unwrap(), duration("90s").unwrap());
        assert_eq!(patience("2h").unwrap(), duration("120m").unwrap());
        assert_eq!(size("64 MiB").unwrap(), 64 << 20);
        for bad in ["", "d", "30", "-1d", "1.5h", "30 days", "99999999999999999d"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        assert_eq!((size("64").unwrap(), shown_size(64)), (64, "64B".to_owned()));
        for bad in ["", "-1", "1e6", "64MB", "MiB", "99999999TiB", "9223372036854775808"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
