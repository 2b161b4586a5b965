//! Ids of steps and commands.

use serde::{Deserialize, Serialize};

use crate::collections::Id;
use crate::contract::{Encode, Shape, Shaped, Sink};

/// The id of a step that must be answered. A host answers each once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StepId(pub u32);

/// The id of a command: a call, a purchase, a change of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CommandId(pub u32);

/// A number that names a pool inside the client. In a build without pools no such number can be made, so the compiler leaves out whatever
/// would need one.
#[cfg(feature = "pools")]
pub(crate) type PoolNo = u32;
#[cfg(not(feature = "pools"))]
pub(crate) type PoolNo = std::convert::Infallible;

impl Shaped for CommandId {
    const SHAPE: Shape = Shape::Integer;
}

impl Encode for CommandId {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        self.0.encode(sink)
    }
}

impl Id for StepId {
    fn of(number: u32) -> Self {
        StepId(number)
    }
}

impl Id for CommandId {
    fn of(number: u32) -> Self {
        CommandId(number)
    }
}
