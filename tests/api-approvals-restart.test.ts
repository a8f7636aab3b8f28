import { readFileSync } from 'node:fs';
import { setImmediate as nextTick } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { Approval, WorldAgent } from '../core/protocol/entities.ts';
import type { StoredEvent } from '../core/protocol/events.ts';
import { PostedAndIdle } from '../core/protocol/requests.ts';
import { startServer, temporaryFolder, writeScript } from './support/command.ts';

type Server = Awaited<ReturnType<typeof startServer>>;

interface Site {
  server: Server;
  call(method: string, path: string, body?: unknown, key?: string): Promise<{ status: number; body: unknown }>;
  /** Ends the process and starts another on the same data; tells the exit code. */
  restart(signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null>;
}

/** The built program on a folder of its own, with an agent's script that proposes Robin. */
async function openSite(): Promise<Site> {
  const data = temporaryFolder();
  writeScript(data, 'maker', [
    { when: { toolResult: '"created":true' }, say: 'Robin is here.' },
    { when: { toolResult: '"created":false' }, say: 'Nobody came.' },
    { when: { contains: 'make' }, call: { tool: 'create_agent', args: { name: 'Robin', role: 'a bird' } } },
  ]);
  writeScript(data, 'fresh', [{ say: 'Tweet.' }]);
  const site: Site = {
    server: await startServer(data),
    async call(method, path, body, key) {
      const { url, tokenFile } = site.server.line;
      const headers = {
        authorization: `Bearer ${readFileSync(tokenFile, 'utf8').trim()}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(key === undefined ? {} : { 'idempotency-key': key }),
      };
      const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
      const response = await fetch(`${url}/api/v1${path}`, init);
      return { status: response.status, body: await response.json() };
    },
    async restart(signal) {
      site.server.child.kill(signal);
      const { code } = await site.server.ended;
      site.server = await startServer(data);
      return code;
    },
  };
  return site;
}

interface Scene {
  home: string;
  approval: Approval;
  answer(optionId: string, key: string): ReturnType<Site['call']>;
  /** Each thing happened once, whatever happened to the process in between. */
  expectOnce(): Promise<void>;
}

/** A world in which an agent waits for a person's word on a new one. */
async function openScene(site: Site, name: string): Promise<Scene> {
  const settings = { name, chatLLMProvider: 'script', chatLLMModel: 'fresh' };
  const made = await site.call('POST', '/worlds', settings);
  const home = `/worlds/${(made.body as { id: string }).id}`;
  await site.call('POST', `${home}/agents`, { name: 'Maker', model: 'maker', provider: 'script' });
  const chat = ((await site.call('POST', `${home}/chats`, {})).body as { id: string }).id;
  const say = async (content: string) => {
    const path = `${home}/chats/${chat}/messages?wait=idle&timeoutMs=20000`;
    return PostedAndIdle.parse((await site.call('POST', path, { content })).body);
  };
  const [approval] = (await say('@Maker make one')).approvals;
  if (!approval) throw new Error('nothing waits for a person');
  return {
    home,
    approval,
    answer: (optionId, key) => site.call('POST', `${home}/approvals/${approval.id}/answer`, { optionId }, key),
    async expectOnce() {
      // The chat is idle again only when the turn that waited has ended too.
      await say('@Maker thank you');
      const told = await say('@Robin hello');
      expect(told.messages.map(({ sender, content }) => [sender.id, content])).toContainEqual(['robin', 'Tweet.']);
      const { events } = (await site.call('GET', `${home}/events?limit=500`)).body as { events: StoredEvent[] };
      expect(events.map(({ seq }) => seq)).toEqual(events.map((_, n) => n + 1));
      const once = events.flatMap((event) => {
        if (event.type === 'approval.requested' || event.type === 'approval.answered') return [event.type];
        if (event.type === 'agent.created' && event.data.agent.id === 'robin') return [event.type];
        return event.type === 'message.created' && event.data.message.content === 'Robin is here.' ? ['told'] : [];
      });
      expect(once).toEqual(['approval.requested', 'approval.answered', 'agent.created', 'told']);
    },
  };
}

it('an approval that waits survives kill -9 and an orderly end, and the agent it allows can be talked to', async () => {
  const site = await openSite();
  const scene = await openScene(site, 'Home');
  for (const [signal, code] of [
    ['SIGKILL', null],
    ['SIGTERM', 0],
  ] as const) {
    expect(await site.restart(signal)).toBe(code);
    expect((await site.call('GET', '/approvals')).body).toEqual({ approvals: [scene.approval] });
    expect((await site.call('GET', `${scene.home}/agents/robin`)).status).toBe(404);
  }
  expect((await scene.answer('maybe', 'k0')).status).toBe(400);
  expect(await scene.answer('yes', 'k1')).toMatchObject({ status: 200, body: { accepted: true } });
  await scene.expectOnce();
  const robin = (await site.call('GET', `${scene.home}/agents/robin`)).body as WorldAgent;
  expect(robin).toMatchObject({ source: 'tool', createdBy: 'maker', model: 'fresh' });
  expect(scene.approval.message).toContain(robin.systemPrompt);
});

it.each(['SIGKILL', 'SIGTERM'] as const)(
  'answers that meet the end of the server by %s count once when they are sent again',
  async (signal) => {
    const site = await openSite();
    const scenes: Scene[] = [];
    for (const name of ['Acknowledged', 'Long before', 'Just before', 'At the end', 'Never sent']) {
      scenes.push(await openScene(site, name));
    }
    const [acknowledged, ...sent] = scenes.slice(0, 4);
    const first = new Map([[acknowledged, await acknowledged?.answer('yes', 'key')]]);
    const onTheWay = sent.map(async (scene, n) => {
      for (let tick = 0; tick < n * 4; tick += 1) await nextTick();
      // The connection may break under it: then nobody knows, and that is the point.
      first.set(scene, await scene.answer('yes', 'key').catch(() => undefined));
    });
    for (let tick = 0; tick < 9; tick += 1) await nextTick();
    await site.restart(signal);
    await Promise.all(onTheWay);
    expect(first.get(acknowledged)?.status).toBe(200);
    for (const scene of scenes) {
      const again = await scene.answer('yes', 'key');
      expect(again).toMatchObject({ status: 200, body: { accepted: true, approval: { status: 'answered' } } });
      const given = first.get(scene);
      if (given?.status === 200) expect(again.body).toEqual(given.body);
      expect(await scene.answer('no', 'other')).toMatchObject({ status: 409, body: { accepted: false } });
      await scene.expectOnce();
    }
  },
);
