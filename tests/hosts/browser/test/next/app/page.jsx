"use client";
// A page whose client is made while the module is evaluated, on the server too, which has neither IndexedDB nor the page's address.
import { useEffect, useState } from "react";

import { AgentClient, IndexedDBStore } from "hopline";

const agent = new AgentClient({ baseUrl: "/api/v1", store: new IndexedDBStore("records") });

export default function Page() {
  const [text, show] = useState("nothing yet");
  useEffect(() => {
    const buys = async () => {
      const { session_id } = await agent.openSession({ session_type: "dynamic", product_no: "dynamic-world", quantity: 1 }, { intent: "job-17" });
      return session_id;
    };
    buys().then(show, ({ message }) => show(message));
  }, []);
  return <output>{text}</output>;
}
