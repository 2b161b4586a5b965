//! The possible results of an operation in doubt: the id or the number that distinguishes its outcomes.

use crate::contract::agent::GetSession;
use crate::contract::{Operation, json_of};
use crate::engine::bad_order_no;
use crate::wire::{Facts, build};

/// The resource that a write makes, if it has a name of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Made {
    Session,
    Order,
    Recharge,
    User,
}

impl Made {
    /// The resource that this operation makes.
    pub(crate) fn by(operation: &str) -> Option<Made> {
        match operation {
            "create_session" => Some(Made::Session),
            "create_static_order" | "create_dynamic_order" => Some(Made::Order),
            "create_recharge" => Some(Made::Recharge),
            "create_user" => Some(Made::User),
            _ => None,
        }
    }

    /// The name that distinguishes it from others.
    pub(crate) fn name(self, facts: &Facts) -> Option<String> {
        match self {
            Made::Session => facts.session_id.clone(),
            Made::Order => facts.order_no.clone(),
            Made::Recharge => facts.order_id.clone(),
            Made::User => facts.id.map(|id| id.to_string()),
        }
    }

    /// The facts that its name alone determines, or the reason why it can't be its name.
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

/// The facts about an operation with this result, or the reason why that is impossible.
pub(crate) fn what_became(operation: &str, became: &str) -> Result<Facts, String> {
    if became.trim() != became {
        return Err("must not begin or end with a space".to_owned());
    }
    let made = Made::by(operation).ok_or("belongs to a new session, order, recharge or sub-user")?;
    made.facts(became)
}
