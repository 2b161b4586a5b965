//! Makes the clients for threads of those for tasks, so that each is written once: the same text, in which nothing is awaited.

/// The files that are written by hand for tasks, with their text.
const SOURCES: [(&str, &str); 6] = [
    ("_async_agent.py", include_str!("../../../../bindings-python/python/hopline/_async_agent.py")),
    ("_async_client.py", include_str!("../../../../bindings-python/python/hopline/_async_client.py")),
    ("_async_pages.py", include_str!("../../../../bindings-python/python/hopline/_async_pages.py")),
    ("_async_pool.py", include_str!("../../../../bindings-python/python/hopline/_async_pool.py")),
    ("_async_reseller.py", include_str!("../../../../bindings-python/python/hopline/_async_reseller.py")),
    ("_async_session.py", include_str!("../../../../bindings-python/python/hopline/_async_session.py")),
];

/// Names of the one kind, and what stands in their place in the other. Beside them, `Async` and `_async` before a name change.
const NAMES: [(&str, &str); 12] = [
    ("AgentClient", "AsyncAgentClient"),
    ("AsyncAcquiring", "Lease"),
    ("AsyncOpening", "OpenSession"),
    ("AsyncPoolOpening", "Pool"),
    ("ResellerClient", "AsyncResellerClient"),
    ("__aenter__", "__enter__"),
    ("__aexit__", "__exit__"),
    ("__aiter__", "__iter__"),
    ("_tasks", "_run"),
    ("to_sync", "to_async"),
    ("transport_for_tasks", "transport_for_threads"),
    ("transport_for_threads", "transport_for_tasks"),
];

/// Phrases that have other words for threads, replaced before names.
const PHRASES: &[(&str, &str)] = &[
    (" for tasks. The one for threads is printed from this one.", " for threads, printed from the one for tasks."),
    ("The client for threads is printed from this one.", "For threads; printed from the client for tasks."),
    (", for tasks. Any number of them may use it at once, in any event loop.", ", for threads. Any number of them may use it at once."),
    (
        "    Cancelling a task cancels its call: the request is aborted and the record is kept. If others wait for the same operation, the
    request continues, or is sent again with the same key. Leaving an `async with` block closes the client and ends no session.
",
        "    Leaving a `with` block closes the client: calls under way are cancelled, records stay, no session is ended.\n",
    ),
    (
        "    The client logs in by itself, as `ResellerClient` does. Cancelling a task cancels its call: the request is aborted, unless
    others wait for it too, and the record is kept; an order continues. Leaving an `async with` block closes the client and cancels
    no order.
",
        "    The client logs in by itself, once for all of them, and again when its token is refused or about to end. Leaving a `with`
    block closes the client: calls under way are cancelled, records stay, no order is cancelled.
",
    ),
    (
        "            http: An `httpx.AsyncClient`, `aiohttp.ClientSession`, one that blocking clients take, or any callable that takes a `Request`
                and returns a `Response` or awaits it. Default: the standard library in threads.
",
        "            http: A `requests.Session`, `httpx.Client`, `urllib3.PoolManager`, or any callable that takes a `Request` and
                returns a `Response`. Default: the standard library.
",
    ),
    ("The same client for threads:", "The same client for tasks:"),
    ("Waits for other calls and for the store,", "Waits for calls in other threads and for the store,"),
    ("A session that a task opened.", "A session that was opened."),
    ("As an async context manager it ends a dynamic", "As a context manager it ends a dynamic"),
    ("Awaitable, ", ""),
    ("Awaitable[Taken | None]", "Taken | None"),
    ("import AsyncOpening, AsyncOpenSession\n", "import AsyncOpenSession\n"),
    ("import AsyncPool, AsyncPoolOpening\n", "import AsyncPool\n"),
    ("from ._opening import Opening\n", ""),
    ("AsyncAcquiring(self._acquire(target, key, avoid, timeout))", "self._acquire(target, key, avoid, timeout)"),
    ("AsyncPoolOpening(self._opened_pool(operation, pool_params(operation, params), use_with, blocked))", "self._opened_pool(operation, pool_params(operation, params), use_with, blocked)"),
    ("Pools for tasks, and their leases. Those for threads are printed from these.", "Pools for threads, and their leases."),
    ("A session that was lent to a task.", "A session that was lent."),
    ("A pool that a task opened. As an async context manager it is closed;", "A pool that was opened. Leaving its `with` block closes it;"),
    ("AsyncOpening(self._open_session(params, options, keep))", "self._open_session(params, options, keep)"),
];

/// The files that are printed of those that are written by hand.
pub(super) fn files() -> impl Iterator<Item = (String, String)> {
    SOURCES.into_iter().map(|(name, text)| {
        let text = made(text);
        (renamed(name), format!("# Printed from `{name}` by hopline-bindgen. Do not edit: change that file.\n{text}"))
    })
}

/// The name of a printed file.
pub(super) fn renamed(file: &str) -> String {
    file.replace("_async_", "_sync_")
}

/// The text for threads.
pub(super) fn made(text: &str) -> String {
    let text = without_openings(text);
    let text = PHRASES.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to));
    let mut out = String::new();
    for part in text.split_inclusive(|letter: char| !is_of_a_name(letter)) {
        let name = part.trim_end_matches(|letter| !is_of_a_name(letter));
        let behind = &part[name.len()..];
        if !matches!((name, behind), ("async" | "await", " ")) {
            out.push_str(&blocking_name(name));
            out.push_str(behind);
        }
    }
    out
}

/// Leaves out the classes of what is awaited and opened then, which threads do not need.
fn without_openings(text: &str) -> String {
    let is_opening = |part: &&str| part.starts_with("class ") && part.lines().next().is_some_and(|line| line.contains("(Opening["));
    let parts: Vec<&str> = text.split("\n\n\n").filter(|part| !is_opening(part)).collect();
    format!("{}\n", parts.join("\n\n\n").trim_end())
}

fn is_of_a_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

fn blocking_name(name: &str) -> String {
    if let Some((_, to)) = NAMES.iter().find(|(from, _)| *from == name) {
        return (*to).to_owned();
    }
    match (name.strip_prefix("Async"), name.strip_prefix("_async_"), name.strip_prefix("_sync_")) {
        (Some(rest), ..) if rest.starts_with(|letter: char| letter.is_ascii_uppercase()) => rest.to_owned(),
        (_, Some(rest), _) => format!("_sync_{rest}"),
        (_, _, Some(rest)) => format!("_async_{rest}"),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::APIS;

    #[test]
    fn each_phrase_and_each_name_is_said_for_tasks() {
        let texts: Vec<&str> = SOURCES.iter().map(|(_, text)| *text).collect();
        for (phrase, _) in PHRASES {
            assert!(texts.iter().any(|text| text.contains(phrase)), "{phrase}");
        }
        let operations = APIS.map(super::super::operations::print);
        for (name, _) in NAMES {
            assert!(
                texts
                    .iter()
                    .copied()
                    .chain(operations.iter().map(String::as_str))
                    .any(|text| text.split(|letter| !is_of_a_name(letter)).any(|word| word == name)),
                "{name}"
            );
        }
    }

    #[test]
    fn nothing_is_awaited_in_a_thread() {
        for (name, text) in files() {
            let is_of_tasks =
                |line: &str| ["async def", "await ", "Await", "__a", "tasks cancel", "event loop"].iter().any(|word| line.contains(word));
            assert_eq!(text.lines().find(|line| is_of_tasks(line)), None, "{name}");
        }
        let source = "async def f(self) -> AsyncPages[I, P]:\n    async with g() as h:\n        return await h.awaited(Asynchronous)\n";
        let wanted = "def f(self) -> Pages[I, P]:\n    with g() as h:\n        return h.awaited(Asynchronous)\n";
        assert_eq!(made(source), wanted);
        let opening = "class AsyncA:\n    x = 1\n\n\nclass AsyncOpening(Opening[AsyncA]):\n    \"\"\"Is awaited.\"\"\"\n";
        assert_eq!(made(opening), "class A:\n    x = 1\n");
    }
}
