//! Quotas: how much directories at the top of the tree may hold.

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::Config;
use super::path_glob::FileGlob;
use crate::kind::yaml::{Wrong, line};
use crate::names::FileName;
use crate::record::word_or_quoted;
use crate::units;

/// Most quotas of one configuration.
const QUOTAS_MAX: usize = 64;

/// What each of some directories may hold; a limit that is not there does not limit.
#[derive(Clone, Debug)]
pub struct Quota {
    /// Their names, as a glob.
    pub path: FileGlob,
    /// Bytes of plain files.
    pub bytes: Option<u64>,
    /// Files, directories and links.
    pub inodes: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuotaForm {
    path: Spanned<String>,
    #[serde(default)]
    bytes: Option<Spanned<String>>,
    #[serde(default)]
    inodes: Option<u64>,
}

impl QuotaForm {
    fn quota(self) -> Result<Quota, Wrong> {
        let at = line(&self.path);
        let path = FileGlob::parse(&self.path.value).map_err(|why| (at, why))?;
        if !path.is_one_name() {
            let reason = "a quota is one of directories at the top: `scratchpad`, `team-*`";
            return Err((at, reason.to_owned()));
        }
        let bytes = match &self.bytes {
            Some(text) => Some(units::size(&text.value).map_err(|why| (line(text), why))?),
            None => None,
        };
        if bytes.is_none() && self.inodes.is_none() {
            return Err((at, "a quota has `bytes`, `inodes`, or both".to_owned()));
        }
        Ok(Quota { path, bytes, inodes: self.inodes })
    }
}

pub(super) fn parse(forms: Vec<QuotaForm>) -> Result<Vec<Quota>, Wrong> {
    if forms.len() > QUOTAS_MAX {
        return Err((None, format!("over {QUOTAS_MAX} quotas")));
    }
    forms.into_iter().map(QuotaForm::quota).collect()
}

/// The quotas as the configuration has them, which is read back to the same.
pub(super) fn write(quotas: &[Quota], out: &mut String) {
    if quotas.is_empty() {
        out.push_str("quotas: []\n");
        return;
    }
    out.push_str("quotas:\n");
    for quota in quotas {
        out.push_str(&format!("  - {{ path: {}", word_or_quoted(quota.path.as_str())));
        if let Some(bytes) = quota.bytes {
            out.push_str(&format!(", bytes: {}", units::shown_size(bytes)));
        }
        if let Some(inodes) = quota.inodes {
            out.push_str(&format!(", inodes: {inodes}"));
        }
        out.push_str(" }\n");
    }
}

impl Config {
    /// Whether any directory has a quota.
    #[must_use]
    pub fn has_quotas(&self) -> bool {
        !self.quotas.is_empty()
    }

    /// The quota of the directory `name` at the top of the tree; the first that names it counts.
    #[must_use]
    pub fn quota(&self, name: &FileName) -> Option<&Quota> {
        self.quotas.iter().find(|quota| quota.path.takes_name(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quotas(text: &str) -> Result<Config, String> {
        let text = format!("workspaces: []\nquotas:\n{text}");
        Config::parse("c", &text).map_err(|error| error.to_string())
    }

    #[test]
    fn the_first_that_names_a_directory_counts_and_all_are_read_back() {
        let text = "  - { path: team-a, bytes: 1GiB }\n  - { path: 'team-*', inodes: 10 }\n";
        let config = quotas(text).unwrap();
        let again = Config::parse("c", &config.to_yaml()).unwrap();
        for config in [config, again] {
            let of = |name: &str| {
                let quota = config.quota(&FileName::new(name).unwrap())?;
                Some((quota.bytes, quota.inodes))
            };
            assert_eq!(of("team-a"), Some((Some(1 << 30), None)));
            assert_eq!(of("team-b"), Some((None, Some(10))));
            assert_eq!(of("scratchpad"), None);
        }
    }

    #[test]
    fn a_quota_is_one_of_directories_at_the_top() {
        for wrong in ["a/b, bytes: 1GiB", "'**', bytes: 1GiB", "a", "a, bytes: many"] {
            assert!(quotas(&format!("  - {{ path: {wrong} }}\n")).is_err(), "{wrong} was taken");
        }
        let many = |number: u32| {
            let all = (0..number).map(|n| format!("  - {{ path: a{n}, bytes: 1GiB }}\n"));
            quotas(&all.collect::<String>())
        };
        many(64).unwrap();
        assert!(many(65).unwrap_err().contains("over 64 quotas"));
    }
}
