//! Witnesses of the rules of pools: a plan or life that comes to harm where a rule is taken away.

use hopline::pool::{PoolRule, without};

use super::fleet::{PLAN_SEED, PLANS, fleet_life};
use super::pool_life;

/// A plan or life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PoolWitness {
    /// The plan of this name.
    Plan(&'static str),
    /// The life of several programs in virtual time that this seed draws.
    Fleet(u64),
    /// The life in which anything happens that this seed draws.
    Life(u64),
}

impl PoolWitness {
    /// The harm that it comes to, without a rule if one is named: figures that are missed, laws that are broken, checks that fail.
    pub fn finds(self, rule: Option<PoolRule>) -> Vec<String> {
        without(rule, || match self {
            PoolWitness::Plan(name) => {
                let plan = PLANS.iter().find(|plan| plan.name == name).expect("there is such a plan");
                match plan.live(PLAN_SEED, false) {
                    Ok(lived) => lived.figures.iter().filter(|figure| !figure.is_met()).map(|figure| figure.to_string()).collect(),
                    Err(wrong) => vec![first_line(wrong)],
                }
            }
            PoolWitness::Fleet(seed) => match fleet_life(seed, false) {
                Ok(lived) => lived.broken.into_iter().map(|(law, how)| format!("{law:?}: {how}")).collect(),
                Err(wrong) => vec![first_line(wrong)],
            },
            PoolWitness::Life(seed) => pool_life(seed).err().map(first_line).into_iter().collect(),
        })
    }
}

fn first_line(text: String) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
