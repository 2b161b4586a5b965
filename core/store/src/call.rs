//! Carries out the store calls of a client.

use std::time::Duration;

use hopline::client::{Listed, Name, Space, StoreAnswer, StoreCall};

use crate::{Claim, Entry, Error, Put, Spend, Spent, Store, Written};

/// Makes the call of a client.
pub(crate) fn make<S: Store + ?Sized>(store: &S, call: &StoreCall) -> Result<StoreAnswer, Error> {
    Ok(match call {
        StoreCall::Claim { names, most } => match store.claim(&texts(names), usize::try_from(*most).unwrap_or(usize::MAX))? {
            Claim::Claimed(names) => StoreAnswer::Claimed(names.into_iter().map(|(name, data)| (Name::from(name), data)).collect()),
            Claim::Busy(data) => StoreAnswer::Busy(data),
        },
        StoreCall::Put { name, data, new, keep_for, release } => {
            let keep_for = keep_for.map(|ms| Duration::from_millis(ms.max(0).unsigned_abs()));
            answer(store.put(name.as_str(), data, &Put { new: *new, keep_for, release: *release })?)
        }
        StoreCall::Delete { name } => answer(store.delete(name.as_str())?),
        StoreCall::Release { names } => {
            store.release(names.as_deref().map(texts).as_deref())?;
            StoreAnswer::Done
        }
        StoreCall::List { space: Space(space), after, open } => {
            let page = store.list(space, after.as_ref().map(|after| after.as_str()), *open)?;
            let listed = |Entry { name, data, whose }| Listed { name: Name::from(name), data, whose };
            StoreAnswer::Listed { entries: page.entries.into_iter().map(listed).collect(), more: page.more }
        }
        StoreCall::Spend { space: Space(space), day, entry, amount, cap } => {
            match store.spend(&Spend { space, day: *day, entry, amount: amount.0, cap: cap.map(|cap| cap.0) })? {
                Spent::Granted { day } => StoreAnswer::Granted { day },
                Spent::Over { day, total } => StoreAnswer::Over { day, total: hopline::contract::Decimal(total) },
            }
        }
    })
}

fn answer(written: Written) -> StoreAnswer {
    match written {
        Written::Done => StoreAnswer::Done,
        Written::Lost => StoreAnswer::Lost,
    }
}

fn texts(names: &[Name]) -> Vec<&str> {
    names.iter().map(|name| name.as_str()).collect()
}
