//! What an operation in doubt may have become: the id or the number that tells one outcome of it from another.

use crate::contract::agent::GetSession;
use crate::contract::{Operation, json_of};
use crate::engine::bad_order_no;
use crate::wire::{Facts, build};

/// What a write makes, if that has a name of its own.
#[derive(Debug, Clone, Copy)]
pub(super) enum Made {
    Session,
    Order,
    Recharge,
    User,
}

impl Made {
    /// What this operation makes.
    pub(super) fn by(operation: &str) -> Option<Made> {
        match operation {
            "create_session" => Some(Made::Session),
            "create_static_order" | "create_dynamic_order" => Some(Made::Order),
            "create_recharge" => Some(Made::Recharge),
            "create_user" => Some(Made::User),
            _ => None,
        }
    }

    /// What tells it from others.
    pub(super) fn name(self, facts: &Facts) -> Option<String> {
        match self {
            Made::Session => facts.session_id.clone(),
            Made::Order => facts.order_no.clone(),
            Made::Recharge => facts.order_id.clone(),
            Made::User => facts.id.map(|id| id.to_string()),
        }
    }

    /// What is known of it by its name alone, or why that can't be its name.
    fn facts(self, name: &str) -> Result<Facts, String> {
        let number = || bad_order_no(name).map_or_else(|| Ok(Some(name.to_owned())), |rule| Err(rule.to_owned()));
        match self {
            Made::Session => {
                let read = GetSession { session_id: name.to_owned(), include_credentials: None };
                build(GetSession::ENDPOINT, &json_of(&read)).map_err(|refusal| refusal.rule)?;
                // A session is more than its id, so there is no answer to read.
                Ok(Facts { session_id: read.session_id.into(), settled: true, ..Facts::default() })
            }
            Made::Order => Ok(Facts { order_no: number()?, ..Facts::default() }),
            Made::Recharge => Ok(Facts { order_id: number()?, ..Facts::default() }),
            Made::User => match name.parse() {
                Ok(id) => Ok(Facts { id: Some(id), ..Facts::default() }),
                Err(_) => Err("must be the number of a sub-user".to_owned()),
            },
        }
    }
}

/// What is known of an operation that became this, or why it can't be.
pub(super) fn what_became(operation: &str, became: &str) -> Result<Facts, String> {
    if became.trim() != became {
        return Err("must not begin or end with a space".to_owned());
    }
    let made = Made::by(operation).ok_or("belongs to a new session, order, recharge or sub-user")?;
    made.facts(became)
}
