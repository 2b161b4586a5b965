//! Several programs of one pool in virtual time, driven by what is due. A plan is such a life with the figures that it must come to; drawn
//! lives are checked against the laws of pools.

mod agenda;
mod caller;
mod draw;
mod laws;
mod life;
mod measures;
mod onlooker;
mod plans;
mod story;
mod targets;
mod work;

pub use self::draw::{FleetLived, fleet_life};
pub use self::laws::Law;
pub use self::measures::{Bound, Figure, Measure, Measured, Who};
pub use self::plans::{FleetPlan, PLAN_SEED, PLANS, PlanLived};
