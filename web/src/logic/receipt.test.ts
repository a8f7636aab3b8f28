import { describe, expect, it } from 'vitest';
import type { Message } from '../../../core/protocol/entities.ts';
import { IgnoreReason, WakeReason } from '../../../core/protocol/entities.ts';
import { agent, message } from '../testing/fixtures.ts';
import { receiptOf } from './receipt.ts';

const agents = [agent('planner'), agent('writer'), agent('critic', { status: 'inactive' })];
const routed = (ignored: unknown[], woke: unknown[] = []): Message =>
  message(1, { routing: { woke, ignored } as unknown as Message['routing'] });

describe('a receipt', () => {
  it('names whom a message woke, and why where it was not by name', () => {
    const receipt = receiptOf(routed([], [{ agentId: 'planner', reason: 'main_agent' }]), agents);
    expect([receipt.woke[0]?.name, receipt.how]).toEqual(['Planner', 'main agent, as nobody was named']);
  });

  it('offers to forward to an agent that was only mentioned', () => {
    const [one] = receiptOf(routed([{ text: '@writer', reason: 'reference', agentId: 'writer' }]), agents).unwoken;
    expect([one?.forwardTo?.agentId, one?.isNotable]).toEqual(['writer', true]);
  });

  it('offers nothing for an agent that is muted, or that the message woke all the same', () => {
    const muted = receiptOf(routed([{ text: '@critic', reason: 'reference', agentId: 'critic' }]), agents);
    const woken = receiptOf(
      routed([{ text: '@writer', reason: 'reference', agentId: 'writer' }], [{ agentId: 'writer', reason: 'all' }]),
      agents,
    );
    expect([muted.unwoken[0]?.forwardTo, woken.unwoken[0]?.forwardTo]).toEqual([null, null]);
  });

  it('asks whether a known name was meant', () => {
    const [one] = receiptOf(routed([{ text: '@wrter', reason: 'unknown', suggestion: 'writer' }]), agents).unwoken;
    expect([one?.suggestion?.name, one?.why]).toEqual(['Writer', 'nobody here has this name']);
  });

  it('has words for every reason that there is', () => {
    for (const reason of IgnoreReason.options) {
      const [one] = receiptOf(routed([{ text: '@writer', reason, agentId: 'writer' }]), agents).unwoken;
      expect(one?.why, reason).toMatch(/[a-z] [a-z]/);
    }
    for (const reason of WakeReason.options) {
      expect(receiptOf(routed([], [{ agentId: 'writer', reason }]), agents).how, reason).toMatch(/[a-z]{3}/);
    }
  });
});
