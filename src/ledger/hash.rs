//! A SHA-256, the link of the chain.

use std::fmt;

use sha2::{Digest, Sha256};

/// A SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash([u8; 32]);

/// The text is not 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a hash is 64 lower-case hexadecimal digits")]
pub struct NotAHash;

impl Hash {
    /// What the first event has in the place of its predecessor's hash: 64 zeros.
    pub const ZERO: Hash = Hash([0; 32]);

    /// The hash of `bytes`.
    #[must_use]
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Hash(Sha256::digest(bytes.as_ref()).into())
    }

    /// A hash from its 32 bytes, as the store keeps it.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Hash(bytes)
    }

    /// Its 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(64);
        push_hex(&mut text, &self.0);
        f.write_str(&text)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

impl std::str::FromStr for Hash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<Self, NotAHash> {
        parse_hex(text).map(Hash).ok_or(NotAHash)
    }
}

/// Appends `bytes` as lower-case hexadecimal digits.
pub(super) fn push_hex(out: &mut String, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// Reads exactly `N` bytes from lower-case hexadecimal digits.
pub(super) fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    fn digit(byte: u8) -> Option<u8> {
        match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        }
    }
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let hash = Hash::of("");
        let text = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hash.to_string(), text);
        assert_eq!(text.parse(), Ok(hash));
        assert_eq!(Hash::from_bytes(*hash.as_bytes()), hash);
        assert_eq!(Hash::ZERO.to_string(), "0".repeat(64));
    }

    #[test]
    fn what_is_no_hash() {
        for text in ["", "e3", &"E".repeat(64), &"0".repeat(63), &"0".repeat(65), &"é".repeat(32)]
        {
            assert_eq!(text.parse::<Hash>(), Err(NotAHash), "{text:?}");
        }
    }
}
