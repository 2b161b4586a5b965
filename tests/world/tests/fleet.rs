//! Several programs of one pool: each plan comes to its figures, but for those that are known to miss one today.

use hopline_world::{FleetPlan, PLAN_SEED, PLANS, side_by_side};

#[test]
fn each_plan_comes_to_its_figures_unless_it_is_marked() {
    judge(&PLANS.iter().filter(|plan| plan.name != "big").collect::<Vec<_>>());
}

#[test]
fn fifty_programs_come_to_their_figures_unless_they_are_marked() {
    judge(&PLANS.iter().filter(|plan| plan.name == "big").collect::<Vec<_>>());
}

fn judge(plans: &[&FleetPlan]) {
    let mut wrong = Vec::new();
    for (plan, lived) in plans.iter().zip(side_by_side(plans, |plan| plan.live(PLAN_SEED, false))) {
        let lived = match lived {
            Ok(lived) => lived,
            Err(harm) => {
                wrong.push(format!("{}: {harm}", plan.name));
                continue;
            }
        };
        println!("{}: {}", plan.name, lived.told);
        lived.figures.iter().for_each(|figure| println!("    {figure}"));
        match (lived.figures.iter().all(|figure| figure.is_met()), plan.missed_today) {
            (true, true) => wrong.push(format!("{}: it comes to all of its figures: take its mark `missed_today` away", plan.name)),
            (false, false) => {
                let missed = lived.figures.iter().filter(|figure| !figure.is_met());
                wrong.extend(missed.map(|figure| format!("{}: {figure}", plan.name)));
            }
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "again: cargo xtask world plan NAME\n{}", wrong.join("\n"));
}
