//! One world for the proof. Everything that may happen in it is an [`Act`]; whatever chooses the acts, exhaustively, at random or
//! from a fuzzer's bytes, drives the same world, and one checker reads what happened.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod act;
mod checker;
mod claims;
mod delivery;
mod end;
mod explore;
mod happen;
mod job;
mod network;
mod people;
mod pools;
mod process;
mod scope;
mod service;
mod store;
mod swarm;
mod time;
mod workers;
mod world;

pub use act::{Act, Leaves};
pub use checker::{
    BARRED, CAPPED, CROWDED, DEAR, DENIED, DOUBLED, EARLY, FOREIGN, FORGOTTEN, HELD, INTRUDED, INVENTED, KEPT, LOGINS, LOST, MISCOUNTED,
    MIXED, PUT_OFF, RECHARGED, REFUSED, REKEYED, RENEWED, RESENT, STALE, STUCK, SWAPPED, THROWN, TWICE, UNCOUNTED, UNSAVED, UNTOLD,
};
pub use delivery::{Delivery, StoreResult};
pub use explore::{Explored, Found, Limits, explore, replay, side_by_side};
pub use job::{Job, Manner, Name, Task};
pub use pools::{
    Bound, Figure, FleetLived, FleetPlan, Law, Measure, Measured, PLAN_SEED, PLANS, PlanLived, PoolWitness, PoolsLived, Who, fleet_life,
    pool_fleet, pool_life, pool_month,
};
pub use scope::{Kind, Plan, SCOPES, Scope};
pub use swarm::{Bytes, Source, live, seeded, transcript};
pub use workers::{Fleet, Phase, Statements, WorkersLived, plot};
pub use world::World;
