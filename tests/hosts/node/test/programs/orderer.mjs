// Goes on with whatever order is there, or else places one, and dies where it is told to.
import { ResellerClient } from "hopline";

import { MortalStore, mortalFetch } from "./mortal.mjs";

const reseller = new ResellerClient({ store: new MortalStore(process.env.FOLDER), fetch: mortalFetch((url) => url.includes("/order/create")) });
const resumed = await reseller.resumeAll();
const { phase, order_no } = await reseller.placeOrder(JSON.parse(process.env.WANTED), { intent: "job-17" }).catch((error) => error);
const holds = (await reseller.saved()).map(({ holds }) => holds);
console.log(JSON.stringify({ resumed: resumed.map(({ value }) => value?.phase), phase, order_no, holds }));
await reseller.close();
