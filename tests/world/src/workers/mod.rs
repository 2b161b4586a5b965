//! A thousand workers over one store, in virtual time: what a fleet asks of its store, what it takes of memory and of time, and when others
//! have what a rack of workers had that dies.

mod life;
mod plot;
mod service;
mod store;
mod told;

use self::life::Life;
use crate::pools::Wrong;

pub use self::plot::plot;
pub use self::told::{Fleet, Phase, Statements, WorkersLived};

impl Fleet {
    /// Lives through it: purchases, a minute of use, and the death of a tenth of the workers. `allocated` says how many bytes are in use.
    ///
    /// # Errors
    /// An error names a session that is bought or lent twice, a total that is not that of the charges, or a part without an end.
    pub fn live(self, seed: u64, allocated: fn() -> usize) -> Result<WorkersLived, Wrong> {
        let mut life = Life::new(self, seed);
        let bought = life.buys()?;
        let used = life.uses()?;
        let (taken, takeovers, first_leases) = life.loses_a_rack()?;
        life.check()?;
        let all = allocated();
        life.programs.clear();
        let without_clients = allocated();
        life.store = store::Store::default();
        let memory = [all - without_clients, without_clients - allocated()];
        Ok(WorkersLived { bought, used, taken, takeovers, first_leases, memory })
    }
}
