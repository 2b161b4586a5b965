//! The content of a store's file: a line with the format, the time to keep it and a checksum, then the data.

use sha2::{Digest, Sha256};

const BEGIN: &str = "hopline 2 ";
/// The prefix of damaged data, so that no reader takes it for JSON.
const DAMAGED: &[u8] = b"damaged: ";

/// The data under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) data: Vec<u8>,
    pub(super) keep_until: Option<u64>,
}

impl Record {
    /// Returns true if the time to keep the record is over, which counts only for a name without an owner.
    pub(super) fn has_ended(&self, now: u64) -> bool {
        self.keep_until.is_some_and(|until| until < now)
    }
}

/// The bytes of a file.
pub(super) fn encode(data: &[u8], keep_until: Option<u64>) -> Vec<u8> {
    let until = keep_until.map_or_else(|| "-".to_owned(), |until| until.to_string());
    let mut bytes = format!("{BEGIN}{until} {}\n", checksum(&until, data)).into_bytes();
    bytes.extend_from_slice(data);
    bytes
}

/// Decodes the bytes of a file. Bytes that were cut or changed are returned as unreadable data, and are kept.
pub(super) fn decode(bytes: &[u8]) -> Record {
    sound(bytes).unwrap_or_else(|| Record { data: [DAMAGED, bytes].concat(), keep_until: None })
}

fn sound(bytes: &[u8]) -> Option<Record> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (head, data) = (std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]);
    let (until, sum) = head.strip_prefix(BEGIN)?.split_once(' ')?;
    let keep_until = if until == "-" { None } else { Some(until.parse().ok()?) };
    (checksum(until, data) == sum).then(|| Record { data: data.to_owned(), keep_until })
}

/// The first eight bytes of a SHA-256 in hexadecimal digits.
pub(super) fn checksum(head: &str, data: &[u8]) -> String {
    let digest = Sha256::new().chain_update(head).chain_update(b"\n").chain_update(data).finalize();
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        for (data, keep_until) in [(&b"{}"[..], None), (b"", Some(0)), (b"\n\n", Some(u64::MAX))] {
            assert_eq!(decode(&encode(data, keep_until)), Record { data: data.to_owned(), keep_until });
        }
    }

    #[test]
    fn a_record_that_was_cut_or_changed_anywhere_is_damaged_and_kept() {
        let bytes = encode(br#"{"key":"k-1"}"#, Some(1_750_000_000_000));
        let cut = (0..bytes.len()).map(|length| bytes[..length].to_owned());
        let changed = (0..bytes.len()).map(|at| bytes.iter().enumerate().map(|(n, byte)| byte ^ u8::from(n == at)).collect::<Vec<u8>>());
        for wrong in cut.chain(changed) {
            let record = decode(&wrong);
            assert!(record.data.starts_with(DAMAGED) && record.keep_until.is_none(), "{}", String::from_utf8_lossy(&wrong));
        }
    }
}
