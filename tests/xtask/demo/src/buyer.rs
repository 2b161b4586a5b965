//! The program that `--crash` kills: it looks into its store, and buys what it was to buy.

use std::path::PathBuf;

use hopline::client::{Phase, RecordKind};
use hopline::{CallOptions, Client, drive};

use crate::life::{INTENT, cheapest, purchase};
use crate::page::{Page, Tone};
use crate::web::{self, Shown};
use crate::{Told, ensure};

pub(crate) fn run(folder: PathBuf) -> Told {
    end_with_parent(folder.clone());
    let page = Page::new();
    page.row("start", format!("the buyer, process {}", std::process::id()));
    let mut client = Client::new(web::options()?, web::entropy()?)?;
    let mut host = Shown::new(&folder, page)?;
    let asked = client.saved(None);
    for held in drive(&mut client, asked, &mut host)?.entries {
        let what = match held.holds {
            RecordKind::InDoubt => "is in doubt: the same bytes with the same key will ask what became of it",
            _ => "is held",
        };
        page.toned(Tone::Bad, "found", format!("{} under the intent `{}` {what}", held.operation, held.intent.as_deref().unwrap_or("?")));
    }
    let (product, _) = cheapest(&mut client, &mut host)?;
    // The program need not know if it ran before: the intent of a purchase finds it, in doubt or made.
    page.row("buy", format!("1 {} of {} under the intent `{INTENT}`", product.unit, product.product_no));
    let bought = client.open_session(purchase(&product), CallOptions::intent(INTENT));
    let open = drive(&mut client, bought, &mut host)?;
    ensure!(open.phase == Phase::Ready, "the session is {} where it was to be active", open.session.status);
    page.toned(Tone::Good, "session", open.session_id);
    Ok(())
}

/// The starter of this process holds the other end of standard input, and lets go when it ends in any way.
fn end_with_parent(folder: PathBuf) {
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        // The parent had no time to clear up.
        let _ = std::fs::remove_dir_all(folder);
        std::process::exit(1);
    });
}
