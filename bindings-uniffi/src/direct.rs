//! `drive` for Java: a crossing by JNA takes a microsecond if only numbers cross, and ten with each structure of uniffi's. So the move
//! and the answer lie in one piece of memory that Java owns, written as uniffi writes its values.

#![allow(unsafe_code, reason = "a C function that is given an address")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use uniffi::{Lift, Lower};

use crate::{Answer, Client, Driven, Move, Taken, UniFfiTag, Work};

static OPEN: Mutex<BTreeMap<u64, Known>> = Mutex::new(BTreeMap::new());
static LAST: AtomicU64 = AtomicU64::new(0);

/// A client that has a number.
struct Known {
    client: Weak<Client>,
    /// An answer that was too long for the room, until it is fetched.
    left: Vec<u8>,
}

fn open() -> MutexGuard<'static, BTreeMap<u64, Known>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a client that has a number.
pub(crate) fn numbered(make: impl FnOnce(u64) -> Client) -> Arc<Client> {
    let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    let client = Arc::new(make(number));
    open().insert(number, Known { client: Arc::downgrade(&client), left: Vec::new() });
    client
}

impl Drop for Client {
    fn drop(&mut self) {
        open().remove(&self.number);
    }
}

/// [`Client::drive`]: a `Move` and a body lie in the first `length` of the `room` bytes at `address`. A `Driven` is written there, whose
/// answers have neither `raw` nor `packed`, and behind it both of each, with their lengths. Returns the length of the result: if it is more
/// than the room, nothing was written, and the next call, with a `length` of 0 and more room, gets it. Returns -1 if there is no such
/// client, or no such move.
///
/// # Safety
///
/// The `room` bytes at the address belong to this call alone until it returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hopline_drive(
    client: u64,
    owner: u64,
    address: *mut u8,
    room: u32,
    length: u32,
    unix_ms: i64,
    monotonic_ms: i64,
) -> i32 {
    if address.is_null() {
        return -1;
    }
    // SAFETY: the memory is the caller's, for this call alone.
    let memory = unsafe { std::slice::from_raw_parts_mut(address, room as usize) };
    let told = memory.get(..length as usize).unwrap_or_default();
    let Some(answer) = answer(client, owner, told, unix_ms, monotonic_ms) else { return -1 };
    match memory.get_mut(..answer.len()) {
        Some(place) => place.copy_from_slice(&answer),
        None => {
            let needed = answer.len();
            open().entry(client).and_modify(|known| known.left = answer);
            return needed.try_into().unwrap_or(i32::MAX);
        }
    }
    answer.len().try_into().unwrap_or(i32::MAX)
}

fn answer(number: u64, owner: u64, mut told: &[u8], unix_ms: i64, monotonic_ms: i64) -> Option<Vec<u8>> {
    let client = {
        let mut open = open();
        let known = open.get_mut(&number)?;
        if told.is_empty() {
            return Some(std::mem::take(&mut known.left));
        }
        known.client.upgrade()?
    };
    let what = <Move as Lift<UniFfiTag>>::try_read(&mut told).ok()?;
    let mut driven = client.drive(owner, what, told, unix_ms, monotonic_ms);
    let large = driven.work.iter_mut().flat_map(answers_of).flat_map(large).collect::<Vec<_>>();
    let mut answer = Vec::new();
    <Driven as Lower<UniFfiTag>>::write(driven, &mut answer);
    for bytes in large {
        answer.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
        answer.extend(bytes);
    }
    Some(answer)
}

fn answers_of(work: &mut Work) -> Vec<&mut Answer> {
    let Work::Ended { results, .. } = work else { return Vec::new() };
    results.iter_mut().filter_map(|taken| if let Taken::Answered { answer } = taken { Some(answer) } else { None }).collect()
}

/// The parts that uniffi would write byte by byte. Few callers read `raw`, so Java makes a text of it only when it is read.
fn large(answer: &mut Answer) -> [Vec<u8>; 2] {
    [std::mem::take(&mut answer.raw).into_bytes(), std::mem::take(&mut answer.packed)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MoveAnswer;

    /// Crosses as Java does, in memory of its own.
    fn cross(number: u64, owner: u64, memory: &mut [u8], what: Option<Move>, body: &[u8]) -> i32 {
        let mut told = Vec::new();
        what.into_iter().for_each(|what| <Move as Lower<UniFfiTag>>::write(what, &mut told));
        told.extend(body);
        memory.get_mut(..told.len()).expect("there is room").copy_from_slice(&told);
        let (room, length) = (memory.len().try_into().expect("is small"), told.len().try_into().expect("is small"));
        // SAFETY: the memory is borrowed for the call.
        unsafe { hopline_drive(number, owner, memory.as_mut_ptr(), room, length, 1_700_000_000_000, 0) }
    }

    fn driven(memory: &[u8], length: i32) -> (Driven, Vec<Vec<u8>>) {
        let mut read = &memory[..usize::try_from(length).expect("is a length")];
        let driven = <Driven as Lift<UniFfiTag>>::try_read(&mut read).expect("was written");
        let mut large = Vec::new();
        while !read.is_empty() {
            large.push(<Vec<u8> as Lift<UniFfiTag>>::try_read(&mut read).expect("was written"));
        }
        (driven, large)
    }

    fn balance() -> Move {
        Move::Start { operation: "get_balance".to_owned(), params: "{}".to_owned(), options: "{}".to_owned() }
    }

    #[test]
    fn a_move_crosses_in_memory_of_the_callers() {
        let options = r#"{"base_url":"https://api.example/v1","api_key":"canary"}"#;
        let client = Client::driven(options, vec![7; 16], false).expect("the options are sound");
        let mut memory = [0; 4096];
        let length = cross(client.number(), 1, &mut memory, Some(balance()), b"");
        let (Driven { answer: MoveAnswer::Command { command }, work, .. }, _) = driven(&memory, length) else {
            panic!("nothing was started")
        };
        let send = work.iter().find_map(|work| if let Work::Send { step, .. } = work { Some(*step) } else { None });

        let mut small = [0; 64];
        let needed = cross(client.number(), 2, &mut small, Some(balance()), b"");
        assert!(needed > 64, "a request is longer");
        assert_eq!(cross(client.number(), 0, &mut small, None, b""), needed, "it waits until there is room");
        let length = cross(client.number(), 0, &mut memory, None, b"");
        assert_eq!(length, needed);
        assert!(matches!(driven(&memory, length).0.answer, MoveAnswer::Command { command: next } if next != command));

        let step = send.expect("is sent");
        let what = Move::Respond { step, status: 200, headers: Vec::new(), truncated: false };
        let body = br#"{"success":true,"data":{"balance":1}}"#;
        let length = cross(client.number(), 0, &mut memory, Some(what), body);
        let (mut driven, large) = driven(&memory, length);
        assert_eq!(large, [br#"{"balance":1}"#.to_vec(), vec![0]], "nobody documents it");
        assert!(driven.work.iter_mut().flat_map(answers_of).all(|answer| answer.raw.is_empty()), "it comes once");

        let number = client.number();
        drop(client);
        assert_eq!(cross(number, 0, &mut memory, Some(Move::Go), b""), -1, "the client is gone");
    }
}
