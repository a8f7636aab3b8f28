/** Prints what one turn costs in bytes, statements and commits: node --expose-gc measure.mjs w1|w2 TURNS */
import { setup } from './adapter.ts';

const [, , name = 'w1', turnsArg = '200'] = process.argv;
const which = name === 'w2' ? 'w2' : 'w1';
const turns = Number(turnsArg);
const CHUNK = ' lorem ipsum dolor sit,';

const bench = await setup({
  turns,
  agents: turns,
  chunksFor: (mention) =>
    Array.from({ length: 20 }, (_, index) => (index === 0 && mention ? `@${mention}${CHUNK}` : CHUNK)),
  tick: () => new Promise<void>((resolve) => setImmediate(resolve)),
  system: (name) => `You are ${name}. Answer briefly, then hand the turn over with an @mention.`,
});
const run = bench[which];
let ended = 0;
const sink = {
  chunk() {},
  turn() {
    ended++;
  },
};
await run(sink);
globalThis.gc?.();
ended = 0;
const heap = process.memoryUsage().heapUsed;
await run(sink);
const kb = (process.memoryUsage().heapUsed - heap) / 1024;
const spent = bench.spent()[which];
if (ended !== turns) throw new Error(`${ended} turns ended, not ${turns}`);
process.stdout.write(
  JSON.stringify({
    kbPerTurn: kb / turns,
    commitsPerTurn: spent.commits / turns,
    statementsPerTurn: spent.statements / turns,
  }),
);
await bench.close();
