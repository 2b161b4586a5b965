//! The calls of programs to the store show how they buy: every purchase has a slot and a number, the numbers of a slot increase, and a
//! program that has read a hold or a pause buys nothing.

use std::collections::{BTreeMap, BTreeSet};

use hopline::client::{Millis, Name, StoreAnswer, StoreCall, describe};

/// A fault in a life, with the acts that led to it.
pub(crate) type Wrong = String;

/// The state of the pool's record and of the purchases, from the calls of the store.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The state that the record says.
    says: Says,
    /// When each program read the record last, and what it said.
    read: BTreeMap<u8, (Millis, Says)>,
    /// The program that was given the record last, until it puts or releases it: nobody else changes it meanwhile.
    owner: Option<u8>,
    /// When somebody resumed the pool, or a purchase came through: no hold from before that counts.
    freed_at: Millis,
    keys: BTreeSet<String>,
    /// When each program claimed a slot last.
    claimed_at: BTreeMap<(u8, Name), Millis>,
    /// The programs in which somebody resumed the pool, as long as the record does not say so.
    resuming: BTreeSet<u8>,
}

/// The state of purchases, as the record says.
#[derive(Debug, Clone, Copy, Default)]
struct Says {
    paused: bool,
    /// Since when only a trial may be bought: during a hold, and until a session was ready.
    held_since: Option<Millis>,
    /// The slot of a trial that goes on.
    trying: Option<u64>,
}

/// The pool's own record.
pub(crate) fn is_pool(name: &Name) -> bool {
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
    /// A program read the pool's record, which may be its own then, or claimed slots.
    pub(super) fn read(&mut self, program: u8, call: &StoreCall, answer: &StoreAnswer, now: Millis) {
        match (call, answer) {
            (StoreCall::Claim { names, .. }, _) => {
                let granted = |name: &Name| matches!(answer, StoreAnswer::Claimed(given) if given.iter().any(|(given, _)| given == name));
                for name in names.iter().filter(|name| is_pool(name)) {
                    self.read.insert(program, (now, self.says));
                    self.owner = if granted(name) { Some(program) } else { self.owner };
                }
                self.claimed_at.extend(names.iter().filter(|name| is_slot(name)).map(|name| ((program, name.clone()), now)));
            }
            (StoreCall::Release { names }, _) if names.as_ref().is_none_or(|names| names.iter().any(is_pool)) => self.let_go(program, now),
            _ => {}
        }
    }

    /// An owner knows the record until it lets go of it.
    fn let_go(&mut self, program: u8, now: Millis) {
        if self.owner.take_if(|owner| *owner == program).is_some() {
            self.read.insert(program, (now, self.says));
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

    /// A program is about to put a record. A purchase is begun only where the pool's record was read since its slot was claimed, and
    /// allows it. A trial is the one that the record names.
    pub(super) fn asked(&mut self, program: u8, call: &StoreCall, now: Millis) -> Result<(), Wrong> {
        let StoreCall::Put { name, data, .. } = call else { return Ok(()) };
        let Some(known) = describe(data).filter(|_| is_slot(name)) else { return Ok(()) };
        let Some(key) = known.key else { return Ok(()) };
        if !self.keys.insert(key.clone()) || self.resuming.contains(&program) {
            return Ok(());
        }
        let begins = format!("program {program} begins to buy with {key} at {now}");
        let Some((read_at, read)) = self.read.get(&program).copied() else { return Err(format!("{begins}, and never read the record")) };
        let claimed_at = self.claimed_at.get(&(program, name.clone())).copied().unwrap_or_default();
        if read_at < claimed_at && self.owner != Some(program) {
            return Err(format!("{begins}, and read the record at {read_at}, before it claimed the slot at {claimed_at}"));
        }
        if read.paused && read_at > self.freed_at {
            return Err(format!("{begins}, and had read that the pool is paused"));
        }
        let slot = known.intent.as_deref().and_then(purchase).and_then(|(slot, _)| slot.rsplit('/').next()?.parse().ok());
        if read.held_since.is_some_and(|since| since > self.freed_at) && self.says.trying != slot {
            return Err(format!("{begins}, and had read that the pool is held; the trial is in {:?}", self.says.trying));
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
            self.owner = self.owner.filter(|owner| *owner != program);
            let record: serde_json::Value = serde_json::from_slice(data).map_err(|error| error.to_string())?;
            let buying = &record["buying"];
            let is_held = buying["hold"].is_object() || buying["proven"] != true;
            let held_since = if is_held { self.says.held_since.or(Some(now)) } else { None };
            if record["paused"] != true {
                self.resuming.remove(&program);
            }
            self.says = Says { paused: record["paused"] == true, held_since, trying: buying["trying"].as_u64() };
            self.read.insert(program, (now, self.says));
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
