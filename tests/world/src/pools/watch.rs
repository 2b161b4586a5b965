//! ! The calls of programs to the store show how they buy: every purchase has a slot and a number, the numbers of a slot increase, and a
//! program that has read a hold or a pause buys nothing.

use std::collections::{BTreeMap, BTreeSet};

use hopline::client::{Millis, Name, StoreCall, describe};

/// A fault in a life, with the acts that led to it.
pub(super) type Wrong = String;

/// The state of the pool's record and of the purchases, from the calls of the store.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// Since when the record says that the pool is held, or paused.
    held_since: Option<Millis>,
    paused_since: Option<Millis>,
    /// When each program read it last.
    read_at: BTreeMap<u8, Millis>,
    /// When somebody resumed the pool, or a purchase came through: no hold from before that counts.
    freed_at: Millis,
    keys: BTreeSet<String>,
    /// The state that each program knew when it claimed a slot: held, paused, and the time.
    knew: BTreeMap<(u8, Name), (bool, bool, Millis)>,
    /// The programs in which somebody resumed the pool, as long as the record does not say so.
    resuming: BTreeSet<u8>,
}

/// The pool's own record.
pub(super) fn is_pool(name: &Name) -> bool {
    kind(name) == Some('q')
}

pub(super) fn is_slot(name: &Name) -> bool {
    kind(name) == Some('p')
}

fn kind(name: &Name) -> Option<char> {
    name.as_str().split('.').nth(1)?.chars().next()
}

/// The slot of a purchase, and its number.
fn purchase(intent: &str) -> Option<(&str, u64)> {
    let (slot, number) = intent.strip_prefix("pool/")?.rsplit_once('#')?;
    Some((slot, number.parse().ok()?))
}

impl Watch {
    /// A program read the pool's record.
    pub(super) fn read(&mut self, program: u8, call: &StoreCall, now: Millis) {
        if let StoreCall::Claim { names, .. } = call
            && names.iter().any(is_pool)
        {
            self.read_at.insert(program, now);
        }
    }

    /// A person resumes the pool.
    pub(super) fn resumed(&mut self, program: u8, now: Millis) {
        self.resuming.insert(program);
        self.freed(now);
    }

    pub(super) fn freed(&mut self, now: Millis) {
        self.freed_at = now;
    }

    /// A program is about to claim slots, or to put a record. `owns`: the program owns the pool's record, as one that tries a purchase
    /// during a hold does. The state at the time of the claim counts.
    pub(super) fn asked(&mut self, program: u8, call: &StoreCall, owns: bool, now: Millis) -> Result<(), Wrong> {
        if let StoreCall::Claim { names, .. } = call {
            let read_at = self.read_at.get(&program).copied().unwrap_or_default();
            let knows = |since: Option<Millis>| since.is_some_and(|since| since < read_at && since > self.freed_at);
            let known = (knows(self.held_since) && !owns, knows(self.paused_since), now);
            self.knew.extend(names.iter().filter(|name| is_slot(name)).map(|name| ((program, name.clone()), known)));
        }
        let StoreCall::Put { name, data, .. } = call else { return Ok(()) };
        let Some(key) = describe(data).filter(|_| is_slot(name)).and_then(|known| known.key) else { return Ok(()) };
        if !self.keys.insert(key.clone()) || self.resuming.contains(&program) {
            return Ok(());
        }
        let known = self.knew.get(&(program, name.clone())).copied().filter(|(.., at)| *at > self.freed_at);
        let (held, paused, _) = known.unwrap_or_default();
        if held && !owns {
            return Err(format!("program {program} begins to buy with {key}, and had read that the pool is held"));
        }
        if paused {
            return Err(format!("program {program} begins to buy with {key}, and had read that the pool is paused at {now}"));
        }
        Ok(())
    }

    /// The store puts something over what is there.
    pub(super) fn put(
        &mut self,
        program: u8,
        call: &StoreCall,
        before: Option<&Vec<u8>>,
        living: &[String],
        now: Millis,
    ) -> Result<(), Wrong> {
        let StoreCall::Put { name, data, .. } = call else { return Ok(()) };
        if is_pool(name) {
            self.resuming.remove(&program);
            let record: serde_json::Value = serde_json::from_slice(data).map_err(|error| error.to_string())?;
            let since = |before: Option<Millis>, holds: bool| if holds { before.or(Some(now)) } else { None };
            self.held_since = since(self.held_since, record["hold"].is_object());
            self.paused_since = since(self.paused_since, record["paused"] == true);
            return Ok(());
        }
        let known = |data: &[u8]| describe(data).and_then(|known| Some((purchase(known.intent.as_deref()?)?.1, known.clone())));
        let Some((number, _)) = known(data).filter(|_| is_slot(name)) else { return Ok(()) };
        let Some((last, what)) = before.and_then(|before| known(before)) else {
            return if number == 1 { Ok(()) } else { Err(format!("the first purchase of {name} has the number {number}")) };
        };
        if number == last {
            return Ok(());
        }
        if number != last + 1 {
            return Err(format!("purchase {number} of {name} follows purchase {last}"));
        }
        match what.session_id.filter(|session| living.contains(session)) {
            Some(session) => Err(format!("purchase {number} of {name} is begun while {session} lives")),
            None if what.operation.is_some() => Err(format!("purchase {number} of {name} is begun while purchase {last} is in doubt")),
            None => Ok(()),
        }
    }

    /// A purchase goes out.
    pub(super) fn sent(&self, key: Option<&str>) -> Result<(), Wrong> {
        match key {
            Some(key) if self.keys.contains(key) => Ok(()),
            key => Err(format!("a purchase with the key {key:?} goes out that no slot has")),
        }
    }
}
