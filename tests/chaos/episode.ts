import { setTimeout as pause } from 'node:timers/promises';
import { furnish, type Place, writeScripts } from './cast.ts';
import { checkReplays, checkWorld, settled } from './checks.ts';
import { type Follower, followSocket, followStream } from './follower.ts';
import { startLoad } from './load.ts';
import { type Random, seeded } from './random.ts';
import type { Launcher } from './server-process.ts';
import { openSite, type Site } from './site.ts';

/** When a server is killed, as the seed decides. */
const MOMENTS = ['delay', 'delay', 'boot', 'boot+', 'ack', 'turn.started', 'message.created', 'message.delta'] as const;
type Moment = (typeof MOMENTS)[number];

/** No moment is waited for longer: then the kill comes all the same. */
const MOMENT_MS = 3_000;
const MAX_DELAY_MS = 700;
const MAX_BOOT_MS = 900;

export interface EpisodeOptions {
  launcher: Launcher;
  seed: number;
  kills: number;
  writers?: number;
  maxMessages?: number;
  onKill?: (n: number, moment: string) => void;
}

export interface EpisodeReport {
  seed: number;
  kills: number;
  messages: number;
  events: number;
  connections: number;
  faults: string[];
}

/**
 * One data directory whose server is killed again and again under load, at moments that the seed chooses. Ends with
 * every check on what is left, and with a SIGTERM.
 */
export async function runEpisode(options: EpisodeOptions): Promise<EpisodeReport> {
  const { launcher, seed, kills } = options;
  const random = seeded(seed);
  const site = openSite(launcher);
  writeScripts(site.data);
  await site.start();
  const places: Place[] = [];
  for (const [name, chats] of [
    ['North', 3],
    ['South', 2],
    ['Lone', 1],
  ] as const) {
    places.push(await furnish(site, name, chats));
  }
  const followers = places.flatMap(({ world, chats }) => [
    followSocket(site, `socket of ${world}`, world),
    followSocket(site, `socket of ${chats[0]}`, world, chats[0]),
    followStream(site, `stream of ${world}`, world),
  ]);
  const load = startLoad(site, places, random.fork('load'), {
    writers: options.writers ?? 5,
    maxMessages: options.maxMessages ?? 60 * kills,
    wild: true,
  });
  try {
    for (let n = 1; n <= kills; n++) {
      const own = random.fork(`kill-${n}`);
      const moment = own.pick(MOMENTS);
      options.onKill?.(n, moment);
      await untilMoment(moment, own, site, followers, load.nextAck);
      await site.kill();
      // A server that is killed while it boots is one of the kills; what it left must boot too.
      if (moment === 'boot' || moment === 'boot+') {
        const server = site.begin();
        await Promise.race([pause(own.int(0, MAX_BOOT_MS)), moment === 'boot' ? server.ended : server.ready]);
        await site.kill();
      }
      await site.start();
    }
    await load.stop();
    const faults = [...load.faults];
    const all = [...places, ...load.made];
    for (const place of load.made) followers.push(followSocket(site, `late socket of ${place.world}`, place.world));
    let events = 0;
    for (const { world } of all) {
      const own = followers.filter((follower) => follower.world === world);
      const [whole] = own;
      if (whole) await settled(site, whole);
      const acknowledged = load.acknowledged.filter((one) => one.world === world);
      faults.push(...(await checkReplays(site, acknowledged, random)));
      faults.push(...(await checkWorld(site, world, acknowledged, own)));
      events += whole?.events.length ?? 0;
    }
    for (const follower of followers) faults.push(...follower.faults);
    const exit = await site.terminate();
    if (exit.code !== 0) faults.push(`SIGTERM ended it with ${exit.code ?? exit.signal}: ${exit.stderr}`);
    const connections = followers.reduce((sum, follower) => sum + follower.connections(), 0);
    return { seed, kills, messages: load.acknowledged.length, events, connections, faults };
  } finally {
    await Promise.all(followers.map((follower) => follower.stop()));
  }
}

async function untilMoment(
  moment: Moment,
  random: Random,
  site: Site,
  followers: readonly Follower[],
  nextAck: () => Promise<void>,
): Promise<void> {
  await site.up();
  if (moment === 'delay' || moment === 'boot' || moment === 'boot+') return pause(random.int(0, MAX_DELAY_MS));
  const come =
    moment === 'ack' ? nextAck() : random.pick(followers).next((event) => event.type === moment && random.chance(0.3));
  await Promise.race([come, pause(MOMENT_MS)]);
}
