//! The actions and results of machines, in one shape for all of them.

use crate::engine::answer::Answered;
use crate::engine::call::{Call, CallOutcome};
use crate::engine::confirm::{Confirm, Confirmed};
use crate::engine::context::Cx;
use crate::engine::cost::Price;
use crate::engine::counted::Counted;
use crate::engine::event::EventKind;
use crate::engine::jobs::Job;
use crate::engine::lookup::Lookup;
use crate::engine::machine::{Action, Input, Note, Part};
use crate::engine::order::Order;
use crate::engine::prices::Prices;
use crate::engine::session::Follow;
use crate::engine::until::UntilRead;
use crate::engine::write::{Write, WriteOutcome};
use crate::policy::Error;

/// An action or a result, in one shape for all machines.
pub(crate) enum Says {
    Asks(Action),
    Answered(Box<Answered>),
    Failed(Error),
    Other(String),
}

impl From<Action> for Says {
    fn from(action: Action) -> Says {
        Says::Asks(action)
    }
}

impl<T: Into<Says>> From<Part<T>> for Says {
    fn from(part: Part<T>) -> Says {
        match part {
            Part::Asks(action) => Says::Asks(action),
            Part::Done(done) => done.into(),
        }
    }
}

impl From<CallOutcome> for Says {
    fn from(called: CallOutcome) -> Says {
        match called {
            CallOutcome::Pending(action) => Says::Asks(action),
            CallOutcome::Success(answered) => Says::Answered(answered),
            CallOutcome::Failed(_, error) => Says::Failed(error),
            CallOutcome::Cancelled => Says::Other("unwanted".to_owned()),
        }
    }
}

impl From<WriteOutcome> for Says {
    fn from(written: WriteOutcome) -> Says {
        match written {
            WriteOutcome::Accepted(answered) => Says::Answered(answered),
            WriteOutcome::NotThere(_) => Says::Other("not there".to_owned()),
        }
    }
}

impl From<Result<Price, Error>> for Says {
    fn from(price: Result<Price, Error>) -> Says {
        match price {
            Ok(Price::Usd(price)) => Says::Other(format!("price {price}")),
            Ok(Price::Chosen(candidate)) => Says::Other(format!("chosen {} {}", candidate.product_no, candidate.price)),
            Ok(Price::Other(currency)) => Says::Other(format!("price in {currency}")),
            Err(error) => Says::Failed(error),
        }
    }
}

impl From<Confirmed> for Says {
    fn from(confirmed: Confirmed) -> Says {
        match confirmed {
            Confirmed::Shown(answered) => Says::Other(format!("shown {}", answered.facts.status.unwrap_or_default())),
            Confirmed::Failed(failing) => Says::Other(format!("not read: {}", failing.code().unwrap_or_default())),
            Confirmed::TooLong(wait) => Says::Other(format!("asks to wait {wait}")),
            Confirmed::Unfit(rule) => Says::Other(format!("unfit: {rule}")),
        }
    }
}

/// A machine that takes inputs.
pub(crate) trait Machine {
    fn handle(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> Says;
}

macro_rules! machines {
    ($($machine:ident: $handle:ident),* $(,)?) => {
        $(impl Machine for $machine {
            fn handle(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> Says {
                $machine::$handle(self, input, cx).into()
            }
        })*
    };
}

machines! { Call: read, Write: handle, Prices: handle, Follow: handle, Order: handle, UntilRead: handle, Lookup: handle, Job: handle }

impl Machine for Confirm {
    fn handle(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> Says {
        Confirm::handle(self, input, false, cx).into()
    }
}

/// A note by its name and the words that matter.
pub(super) fn named(note: &Note) -> String {
    match note {
        Note::Event(EventKind::Watched { value }) => format!("watched {}", value.as_deref().unwrap_or("nothing")),
        Note::Event(event) => format!("event {}", event.name().as_str()),
        Note::Bought(bought) => format!("bought {}", bought.facts.session_id.as_deref().unwrap_or_default()),
        Note::Shown(facts, phase) => {
            let phase = phase.map(|phase| format!(" {phase:?}"));
            format!("shown {}{}", facts.status.as_deref().unwrap_or_default(), phase.unwrap_or_default())
        }
        Note::Learnt(facts) => format!("learnt {}", facts.status.as_deref().unwrap_or_default()),
        Note::Moved => "moved".to_owned(),
        Note::Gone => "gone".to_owned(),
        Note::Placed(order_no) => format!("placed {order_no}"),
        Note::OrderShown => "order shown".to_owned(),
        Note::Charged(counted, charge) => format!("charged {charge} of {}", usd(counted)),
        Note::Freed(counted) => format!("freed {}", usd(counted)),
        Note::BackendReady(ready) => format!("backend ready {ready}"),
    }
}

fn usd(counted: &[Counted]) -> String {
    counted.iter().map(|counted| counted.usd.to_string()).collect::<Vec<_>>().join(" and ")
}
