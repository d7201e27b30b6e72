// What the scripts for Node share: each scenario has a session of its own, and its
// outcome is a line of JSON on standard output, for aisdk.py.
import { isDeepStrictEqual } from "node:util";
import { subscribe } from "node:diagnostics_channel";
import { z } from "zod";

export const [part, url] = process.argv.slice(2);
export const CITY = "Zürich";
export const SAID = "It is warm in Zürich.";
export const Weather = z.object({ city: z.string() });
// Everything that the helpers of all packages can express.
export const Place = z.object({
  name: z.string().min(1),
  kind: z.enum(["city", "town"]),
  size: z.object({ people: z.number().int().min(0) }).describe("How large it is."),
  near: z.array(z.object({ name: z.string(), km: z.number() })),
  mail: z.email(),
  since: z.iso.date().nullable(),
  is: z.union([z.literal("capital"), z.number()]),
});
export const PLACE = JSON.parse(process.env.PLACE);

const peers = new Set();
subscribe("net.client.socket", ({ socket }) => {
  socket.on("lookup", (error, address, family, host) => peers.add(host));
  socket.on("connect", () => peers.add(`${socket.remoteAddress}:${socket.remotePort}`));
});

export function check(ok, what, got) {
  if (!ok)
    throw new Error(`${what}: ${JSON.stringify(got)}`);
}

export function same(got, wanted, what) {
  check(isDeepStrictEqual(got, wanted), what, got);
}

// Let a scenario run with the name of its session. `turns` is how many answers
// it gets, and `fits` how many of them have a schema.
export async function play(what, { turns = 1, fits = 0 }, run) {
  const session = what.replace(/[^a-z0-9]+/gi, "-");
  try {
    await run(session);
  } catch (error) {
    console.log(JSON.stringify({ what, error: error.stack, answer: error.lastError?.responseBody ?? error.responseBody }));
    process.exit(1);
  }
  console.log(JSON.stringify({ what, session, turns, fits }));
}

// Nothing else than the gateway was called.
export function finish() {
  const own = new URL(url).host;
  const others = [...peers].filter((peer) => peer !== own);
  console.log(JSON.stringify({ what: "the gateway alone is called", error: peers.size > 0 && others.length === 0 ?
    undefined : JSON.stringify([...peers]) }));
}
