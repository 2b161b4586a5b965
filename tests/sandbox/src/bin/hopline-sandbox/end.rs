//! The reasons to end.

use std::future::Future;

/// Listens for the signals that end the program, from now on.
#[cfg(unix)]
pub(crate) fn signal() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Listens for Ctrl-C, from now on.
#[cfg(windows)]
pub(crate) fn signal() -> std::io::Result<impl Future<Output = ()>> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        let _ = interrupt.recv().await;
    })
}

/// Waits for the end of standard input. A thread of its own reads it: the runtime would wait for the read before it let the program end.
pub(crate) async fn parent_gone() {
    let (gone, heard) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = gone.send(());
    });
    let _ = heard.await;
}

/// Waits for the end of the process that leads the session, such as the shell of a terminal. Where there is none now, it waits forever.
#[cfg(unix)]
pub(crate) fn terminal_gone() -> impl Future<Output = ()> {
    use rustix::process::{getpid, getsid, test_kill_process};
    const LOOK: std::time::Duration = std::time::Duration::from_millis(200);
    let is_there = |leader| !matches!(test_kill_process(leader), Err(rustix::io::Errno::SRCH));
    let leader = session_is_ours().then(|| getsid(None).ok()).flatten().filter(|leader| *leader != getpid() && is_there(*leader));
    async move {
        let Some(leader) = leader else { return std::future::pending().await };
        while is_there(leader) {
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Returns false in a container whose session began outside of it: its leader has the number 0 here, which rustix takes for none.
#[cfg(unix)]
fn session_is_ours() -> bool {
    let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else { return cfg!(not(target_os = "linux")) };
    // The name of the program, in brackets, may hold anything. Behind it are the state, the parent, the group and the session.
    stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(3)).is_some_and(|session| session != "0")
}

/// Waits forever: sessions of processes are a thing of Unix.
#[cfg(not(unix))]
pub(crate) fn terminal_gone() -> impl Future<Output = ()> {
    std::future::pending()
}
