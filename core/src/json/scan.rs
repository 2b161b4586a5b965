//! A scanner that pulls tokens from JSON: one pass, no allocation, the same verdict as serde_json.

use std::borrow::Cow;

use super::string::unescape;

/// The deepest nesting that is read. serde_json, Python and others stop at about this depth, and JSON that one reader of a host can't read
/// must not be a success in another.
const DEEPEST: u8 = 100;

/// The text is not JSON, or it is nested too deeply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not JSON, or nested more than 100 levels deep")]
pub struct NotJson;

/// The position of the scanner in a text.
#[derive(Clone)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// The number of levels that it may still go down.
    room: u8,
}

/// A string as it is written between its quotes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QuotedText<'a> {
    pub(crate) text: &'a str,
    escaped: bool,
}

impl<'a> QuotedText<'a> {
    /// The value of the string; `None` if it holds half a surrogate pair, which no text can hold.
    pub(crate) fn plain(self) -> Option<Cow<'a, str>> {
        if self.escaped { unescape(self.text).map(Cow::Owned) } else { Some(Cow::Borrowed(self.text)) }
    }
}

/// The text of one JSON value, without the space around it.
pub(crate) fn whole(text: &str) -> Result<&str, NotJson> {
    let mut scan = Scanner::new(text);
    let found = scan.skip()?;
    scan.end().map(|()| found)
}

/// Returns true if a text is too deeply nested to be read.
pub(crate) fn is_too_deep(text: &str) -> bool {
    let mut scan = Scanner::new(text);
    scan.skip().is_err() && scan.room == 0 && matches!(scan.byte(), b'{' | b'[')
}

/// Returns true if the bytes are the beginning of some JSON and stop before its end.
pub(crate) fn ends_early(bytes: &[u8]) -> bool {
    // Invalid UTF-8 is refused elsewhere; here a character that was cut in two must not hide that the rest is missing.
    let text = String::from_utf8_lossy(bytes);
    let mut scan = Scanner::new(&text);
    scan.skip().is_err() && scan.at >= text.len()
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Scanner { text, at: 0, room: DEEPEST }
    }

    /// The position in bytes.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Moves the scanner to another place of the same depth.
    pub(crate) fn seek(&mut self, at: usize) {
        self.at = at;
    }

    /// The text from that position to here.
    #[inline]
    pub(crate) fn since(&self, from: usize) -> &'a str {
        self.text.get(from..self.at).unwrap_or_default()
    }

    #[inline]
    fn byte(&self) -> u8 {
        // No JSON holds a zero byte, so it stands for the end.
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    /// The next byte that is not a space, without taking it; 0 at the end.
    #[inline]
    pub(crate) fn peek(&mut self) -> u8 {
        match self.byte() {
            byte @ ..=b' ' => self.behind_spaces(byte),
            byte => byte,
        }
    }

    #[cold]
    fn behind_spaces(&mut self, mut byte: u8) -> u8 {
        while matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
            byte = self.byte();
        }
        byte
    }

    #[inline]
    fn take(&mut self, expected: u8) -> Result<(), NotJson> {
        if self.peek() != expected {
            return Err(NotJson);
        }
        self.at += 1;
        Ok(())
    }

    /// Returns an error unless the text is at its end.
    pub(crate) fn end(&mut self) -> Result<(), NotJson> {
        self.peek();
        if self.at < self.text.len() { Err(NotJson) } else { Ok(()) }
    }

    /// `true`, `false` or `null`.
    #[inline]
    pub(crate) fn literal(&mut self, word: &str) -> Result<(), NotJson> {
        for expected in word.bytes() {
            if self.byte() != expected {
                return Err(NotJson);
            }
            self.at += 1;
        }
        Ok(())
    }

    /// A string, from its opening quote.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<QuotedText<'a>, NotJson> {
        self.take(b'"')?;
        let (from, mut escaped) = (self.at, false);
        loop {
            self.at += plain_bytes(self.text.as_bytes().get(self.at..).unwrap_or_default());
            match self.byte() {
                b'"' => {
                    let text = self.since(from);
                    self.at += 1;
                    return Ok(QuotedText { text, escaped });
                }
                b'\\' => {
                    escaped = true;
                    self.escape()?;
                }
                _ => return Err(NotJson),
            }
        }
    }

    #[cold]
    fn escape(&mut self) -> Result<(), NotJson> {
        self.at += 1;
        let digits = match self.byte() {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 0,
            b'u' => 4,
            _ => return Err(NotJson),
        };
        self.at += 1;
        for _ in 0..digits {
            if !self.byte().is_ascii_hexdigit() {
                return Err(NotJson);
            }
            self.at += 1;
        }
        Ok(())
    }

    /// A number as it is written, and whether it has neither a fraction nor an exponent.
    #[inline]
    pub(crate) fn number(&mut self) -> Result<(&'a str, bool), NotJson> {
        let (from, mut whole) = (self.at, true);
        self.at += usize::from(self.byte() == b'-');
        if self.byte() == b'0' {
            self.at += 1
        } else {
            self.digits()?
        }
        if self.byte() == b'.' {
            (self.at, whole) = (self.at + 1, false);
            self.digits()?;
        }
        if matches!(self.byte(), b'e' | b'E') {
            (self.at, whole) = (self.at + 1, false);
            self.at += usize::from(matches!(self.byte(), b'+' | b'-'));
            self.digits()?;
        }
        Ok((self.since(from), whole))
    }

    #[inline]
    fn digits(&mut self) -> Result<(), NotJson> {
        let from = self.at;
        while self.byte().is_ascii_digit() {
            self.at += 1;
        }
        if self.at == from { Err(NotJson) } else { Ok(()) }
    }

    /// Skips the bracket that opens an object or a list, and returns whether there is anything inside.
    #[inline]
    pub(crate) fn open(&mut self, close: u8) -> Result<bool, NotJson> {
        self.room = self.room.checked_sub(1).ok_or(NotJson)?;
        self.at += 1;
        let empty = self.peek() == close;
        if empty {
            self.close();
        }
        Ok(!empty)
    }

    /// Skips the comma or the bracket behind a member or an item, and returns whether another one follows.
    #[inline]
    pub(crate) fn more(&mut self, close: u8) -> Result<bool, NotJson> {
        match self.peek() {
            b',' => {
                self.at += 1;
                Ok(true)
            }
            byte if byte == close => {
                self.close();
                Ok(false)
            }
            _ => Err(NotJson),
        }
    }

    #[inline]
    fn close(&mut self) {
        self.at += 1;
        self.room += 1;
    }

    /// The name of a member and its colon.
    #[inline]
    pub(crate) fn name(&mut self) -> Result<QuotedText<'a>, NotJson> {
        let name = self.string()?;
        self.take(b':').map(|()| name)
    }

    /// Skips a member's name and its colon, if the name is this one and nothing stands between them.
    #[inline]
    pub(crate) fn is_name(&mut self, name: &str) -> bool {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let Some((found, behind)) = rest.get(1..).and_then(|rest| rest.split_at_checked(name.len())) else { return false };
        let is_it = rest.first() == Some(&b'"') && behind.starts_with(b"\":") && same(found, name.as_bytes());
        if is_it {
            self.at += name.len() + 3;
        }
        is_it
    }

    /// Skips one value of any kind and returns its text.
    pub(crate) fn skip(&mut self) -> Result<&'a str, NotJson> {
        let first = self.peek();
        let from = self.at;
        match first {
            b'"' => _ = self.string()?,
            b'{' => {
                let mut more = self.open(b'}')?;
                while more {
                    self.name()?;
                    self.skip()?;
                    more = self.more(b'}')?;
                }
            }
            b'[' => {
                let mut more = self.open(b']')?;
                while more {
                    self.skip()?;
                    more = self.more(b']')?;
                }
            }
            b't' => self.literal("true")?,
            b'f' => self.literal("false")?,
            b'n' => self.literal("null")?,
            b'-' | b'0'..=b'9' => _ = self.number()?,
            _ => return Err(NotJson),
        }
        Ok(self.since(from))
    }
}

/// The number of bytes of a string before its end, an escape or a forbidden byte. Reads eight at a time.
#[inline]
fn plain_bytes(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let (chunks, rest) = bytes.as_chunks::<8>();
    for (n, chunk) in chunks.iter().enumerate() {
        let word = u64::from_le_bytes(*chunk);
        // The high bit of each byte below 32, and of each that the `^` makes zero. A byte may be marked wrongly only behind one
        // that is marked rightly.
        let [quote, slash] = [b'"', b'\\'].map(|byte| word ^ (ONES * u64::from(byte)));
        let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
        let marks = (below(word, 32) | below(quote, 1) | below(slash, 1)) & HIGH;
        if marks != 0 {
            return n * 8 + (marks.trailing_zeros() >> 3) as usize;
        }
    }
    let stops = |byte: &u8| matches!(byte, 0..32 | b'"' | b'\\');
    chunks.len() * 8 + rest.iter().position(stops).unwrap_or(rest.len())
}

/// Returns true if two texts are equal, without a function call for short ones.
#[inline]
pub(crate) fn same(one: &[u8], other: &[u8]) -> bool {
    let ((chunks, rest), (other_chunks, other_rest)) = (one.as_chunks::<8>(), other.as_chunks::<8>());
    one.len() == other.len()
        && chunks.iter().zip(other_chunks).all(|(one, other)| one == other)
        && rest.iter().zip(other_rest).all(|(one, other)| one == other)
}

#[cfg(test)]
mod tests;
