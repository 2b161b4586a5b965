import { like, meta } from "./answers.js";
import { Ref, Registry } from "./dropped.js";

/** The sessions with a handle: each handle shows the newest state that any call has read. */
export class Sessions {
  #all = new Map();
  #dropped = new Registry(([id, ref]) => {
    const handles = this.#all.get(id)?.handles;
    if (handles?.delete(ref) && handles.size === 0) this.#all.delete(id);
  });

  /** Makes a handle show the newest state from now on: that of the others, or else its own. */
  show(handle, own) {
    const id = handle.session_id;
    if (!this.#all.has(id)) this.#all.set(id, { handles: new Set(), state: { ...own, generation: 0 } });
    const { handles, state } = this.#all.get(id);
    const ref = new Ref(handle);
    handles.add(ref);
    this.#dropped.register(handle, [id, ref]);
    Object.assign(handle, state);
  }

  /** Sets the state of a session. */
  tell(id, news) {
    const { handles = [], state } = this.#all.get(id) ?? {};
    Object.assign(state ?? {}, news);
    for (const ref of handles) Object.assign(ref.deref() ?? {}, state);
  }

  /** Takes a session from the answer of a call. Several callers may have waited for one rotation. */
  hear(session, isRotation) {
    const known = this.#all.get(session.session_id);
    if (!known) return;
    const { requestId, phase = known.state.phase } = meta(session);
    const isRotated = isRotation && (requestId === undefined || requestId !== known.rotation);
    if (isRotated) known.rotation = requestId;
    const [before, now] = [known.state.session.proxy ?? {}, session.proxy ?? {}];
    const isNew = isRotated || Object.keys(now).some((name) => (before[name] ?? now[name]) !== (now[name] ?? before[name]));
    // Members that this read did not request keep their values.
    const given = Object.fromEntries(Object.entries(now).filter(([, value]) => value != null));
    const shown = isNew ? session : like({ ...session, proxy: { ...before, ...given } }, session);
    this.tell(session.session_id, { session: shown, phase, generation: known.state.generation + (isNew ? 1 : 0) });
  }
}
