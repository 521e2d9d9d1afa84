//! Which file names are record-like.

use super::Kind;
use crate::names::{FileName, NameError, RecordId};

impl Kind {
    /// The id of the record that a file of this name in a state directory would be: the name
    /// without one of the kind's extensions, if that is a [`RecordId`] and the name is none that
    /// programs give their temporary files. Hidden files, `X~`, `#X#`, `sedXXXXXX`, `X.tmp.<pid>`,
    /// `README.md` have no such extension or stem.
    #[must_use]
    pub fn record_id(&self, name: &FileName) -> Option<RecordId> {
        let stem = self.stem(name.as_str()?)?;
        if is_temporary(stem) {
            return None;
        }
        RecordId::new(stem).ok()
    }

    /// What keeps a file in a state directory from being a record, where that is its name alone: it has one of the
    /// kind's extensions, is none that programs make in passing, and the rest of it can be no id.
    #[must_use]
    pub fn misnamed_record(&self, name: &FileName) -> Option<NameError> {
        let text = String::from_utf8_lossy(name.as_bytes());
        if text.starts_with(['.', '#']) || is_temporary_name(name) {
            return None;
        }
        RecordId::new(self.stem(&text)?).err()
    }

    /// A file's name without one of the kind's extensions.
    fn stem<'a>(&self, name: &'a str) -> Option<&'a str> {
        self.extensions.iter().find_map(|ext| name.strip_suffix(ext.as_str())?.strip_suffix('.'))
    }

    /// The names that a record may have that is called so: by its id, or by the name itself.
    #[must_use]
    pub fn names_of(&self, what: &str) -> Vec<FileName> {
        let with = |end: &String| FileName::new(format!("{what}.{end}")).ok();
        let names = FileName::new(what).ok().into_iter();
        let names = names.chain(self.extensions.iter().filter_map(with));
        names.filter(|name| self.record_id(name).is_some()).collect()
    }

    /// The name of the record that a program may be about to rename a file of this name over: that
    /// without something random before the extension, `X.yaml` of `X.ab12cd_3.yaml`. So mkstemp of
    /// Python names with the prefix `X.` and a suffix (`tempfile._RandomNameSequence`: 8 of [a-z0-9_]),
    /// and so others do with capitals. Digits alone are a date.
    #[must_use]
    pub fn renamed_over(&self, name: &FileName) -> Option<FileName> {
        let (rest, extension) = name.as_str()?.rsplit_once('.')?;
        let (stem, random) = rest.rsplit_once('.')?;
        let is_random = random.len() == 8
            && random.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && !random.bytes().all(|b| b.is_ascii_digit());
        if !is_random {
            return None;
        }
        let record = FileName::new(format!("{stem}.{extension}")).ok()?;
        self.record_id(&record).map(|_| record)
    }
}

/// Whether programs give such a name to a file that they are about to rename, to a backup or to a
/// file of their own beside another: its saves are nobody's business.
#[must_use]
pub fn is_temporary_name(name: &FileName) -> bool {
    let Some(text) = name.as_str() else { return false };
    let alphanumeric = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric());
    let (stem, extension) = text.rsplit_once('.').unwrap_or((text, ""));
    // Editors: backups, locks, swap files; GLib; rsync's `.name.AbC123`; sed's `sedAbC123`.
    text.ends_with('~')
        || (text.starts_with('#') && text.ends_with('#'))
        || text.starts_with(".#")
        || text == "4913"
        || (text.starts_with('.') && matches!(extension, "swp" | "swo" | "swx" | "swpx"))
        || text.starts_with(".goutputstream-")
        || text.strip_prefix("sed").is_some_and(|rest| rest.len() == 6 && alphanumeric(rest))
        || (stem.len() > 1
            && stem.starts_with('.')
            && extension.len() == 6
            && alphanumeric(extension)
            && extension.bytes().any(|b| b.is_ascii_uppercase() || b.is_ascii_digit()))
        || matches!(extension, "tmp" | "part" | "partial" | "crdownload")
        || text.contains(".tmp.")
        || text.contains(".tmp-")
        || is_temporary(text)
        || is_temporary(stem)
}

/// Stems of files that programs make to rename them later, with the extension they kept.
fn is_temporary(stem: &str) -> bool {
    // mkstemp of Python with a suffix: `tmp` and 8 of [a-z0-9_]; others take 6.
    let python = stem.strip_prefix("tmp").is_some_and(|rest| {
        rest.len() >= 6 && rest.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'))
    });
    // mktemp(1) with a suffix: `tmp.` and 10 of [A-Za-z0-9].
    let shell = stem
        .strip_prefix("tmp.")
        .is_some_and(|rest| rest.len() >= 6 && rest.bytes().all(|b| b.is_ascii_alphanumeric()));
    python || shell || stem.ends_with(".tmp") || stem.contains(".tmp.")
}

#[cfg(test)]
mod tests {
    use crate::kind::builtin;
    use crate::names::FileName;

    fn id(name: &str) -> Option<String> {
        let name = FileName::new(name).unwrap();
        builtin::task().record_id(&name).map(|id| id.as_str().to_owned())
    }

    #[test]
    fn records_are_named_by_their_id_and_an_extension_of_the_kind() {
        assert_eq!(id("2026-02-04T1705-bob-x.yaml").unwrap(), "2026-02-04T1705-bob-x");
        assert_eq!(id("a.b_c.yml").unwrap(), "a.b_c");
        assert_eq!(id("X.yaml.yaml").unwrap(), "X.yaml");
        assert_eq!(id("tmp.yaml").unwrap(), "tmp");
        assert_eq!(id("tmp-cleanup.yaml").unwrap(), "tmp-cleanup");
        assert_eq!(id("tmpab12.yaml").unwrap(), "tmpab12");
    }

    #[test]
    fn names_that_would_be_records_if_they_were_ids() {
        let is = |name: &[u8]| builtin::task().misnamed_record(&FileName::new(name).unwrap());
        for name in [&b"a b.yaml"[..], "ü.yml".as_bytes(), b"-x.yaml", b"_x.yaml", b"x\xff.yaml"] {
            assert!(is(name).is_some(), "{name:?}");
        }
        assert!(is(format!("{}.yaml", "x".repeat(201)).as_bytes()).is_some());
        for name in [
            "x.yaml",
            "a b.md",
            "a b.YAML",
            ".a b.yaml",
            "#a b.yaml",
            "a b.yaml~",
            "tmpab12cd.yaml",
            "a b.tmp.yaml",
            ".yaml",
        ] {
            assert_eq!(is(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn names_of_what_is_renamed_over_a_record() {
        let over = |name: &str| {
            let over = builtin::task().renamed_over(&FileName::new(name).unwrap())?;
            Some(over.to_string())
        };
        assert_eq!(over("t-1.ab12cd_3.yaml").unwrap(), "t-1.yaml");
        assert_eq!(over("a.b.Ab12cd_3.yml").unwrap(), "a.b.yml");
        for name in [
            "t-1.yaml",
            "t-1.ab12cd_.yaml",
            "t-1.ab12cd_34.yaml",
            "t-1.20260204.yaml",
            "t-1.ab12cd-3.yaml",
            "t-1.ab12cd_3",
            "t-1.ab12cd_3.md",
            ".ab12cd_3.yaml",
            ".t-1.ab12cd_3.yaml",
            "ab12cd_3.yaml",
        ] {
            assert_eq!(over(name), None, "{name}");
        }
    }

    #[test]
    fn names_that_programs_give_in_passing() {
        let is = |name: &str| super::is_temporary_name(&FileName::new(name).unwrap());
        for name in [
            "X.md~",
            "#X.md#",
            ".#X.md",
            "4913",
            ".X.md.swp",
            "sedAb12Cd",
            ".X.md.aB3dE5",
            "X.yaml.tmp",
            "X.tmp.12.ab",
            "tmpab12cd.json",
            "tmpab12cd34",
            "tmp.aB3dE5fG7h",
            ".goutputstream-ABCDEF",
            "big.iso.part",
            "X.json.tmp-42",
        ] {
            assert!(is(name), "{name}");
        }
        for name in ["X.md", ".gitignore", ".hidden.config", "tmp", "template.md", "x.lock", "sed"]
        {
            assert!(!is(name), "{name}");
        }
    }

    #[test]
    fn temporary_and_other_files_are_no_records() {
        for name in [
            ".X.yaml.swp",
            ".X.yaml",
            "X.yaml~",
            "#X.yaml#",
            "#X.yaml",
            "4913",
            "sedAb12Cd",
            "README.md",
            ".gitkeep",
            "X.json",
            "X.YAML",
            "yaml",
            ".yaml",
            "Xyaml",
            "a b.yaml",
            "-x.yaml",
            "ü.yaml",
            "X.yaml.tmp",
            "X.tmp.12.ab",
            "X.tmp.yaml",
            "X.tmp.77.yaml",
            "tmpab12cd.yaml",
            "tmp12345678.yml",
            "tmp_a1b2c3.yaml",
            "tmp.aB3dE5fG7h.yaml",
            "X.3f2b.tmp",
            "X.yaml.why",
        ] {
            assert_eq!(id(name), None, "{name}");
        }
        assert_eq!(id(&format!("{}.yaml", "x".repeat(201))), None);
        assert!(id(&format!("{}.yaml", "x".repeat(200))).is_some());
    }
}
