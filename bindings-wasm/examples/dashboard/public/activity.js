import { h, list, byId, clock } from "./dom.js";

/** The events, the last first. */
export function activity(account) {
  return () => {
    byId("activity-empty").hidden = account.activity.length > 0;
    byId("activity-log").hidden = account.activity.length === 0;
    list(
      byId("activity"),
      account.activity,
      ({ n }) => n,
      ({ at, tone, text }) => ({
        element: h(
          "li",
          { "data-tone": tone },
          h("time", { class: "quiet small", datetime: new Date(at).toISOString() }, clock(at)),
          h("span", {}, text),
        ),
      }),
    );
  };
}
