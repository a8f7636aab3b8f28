import type { Sender, WakeReason, WorldSettings } from '../protocol/entities.ts';
import { type CompiledRoster, lookupName, type Named, parseMentions } from './mentions.ts';
import { Receipt, type RouteResult } from './receipt.ts';
import { chooseTo, type WrittenName } from './to-list.ts';

export type { RouteResult };

export interface RouteInput {
  content: string;
  /** Set by the server from the authenticated caller. */
  sender: Sender;
  roster: CompiledRoster;
  settings: Pick<WorldSettings, 'mainAgent' | 'humanMentions' | 'agentBroadcasts'>;
  /** The sender of the message that this one answers. */
  replyTo?: Sender | undefined;
  /** Why the turn that wrote this message was woken. */
  wokenBy?: WakeReason | undefined;
}

/** Who takes a turn after a message, by the table of the mention grammar: the first row that fits decides. */
export function route(input: RouteInput): RouteResult {
  const { content, sender, roster, settings } = input;
  const receipt = new Receipt(roster);
  if (sender.kind === 'system' || sender.kind === 'tool') return receipt.result(content);
  const parsed = parseMentions(content, roster);
  const stop = parsed.tags.find((tag) => tag.kind === 'stop')?.word;
  if (parsed.published === '') return receipt.result('', stop);

  const isAgent = sender.kind === 'agent';
  const to = stop ? null : chooseTo(parsed.tags, roster);
  const anywhere = sender.kind === 'human' && settings.humanMentions === 'anywhere';
  /** Why no address of this message wakes anybody, if so. */
  const mute = stop ? 'stopped' : isAgent && parsed.saysNothing ? 'empty_address' : null;
  const address = (name: WrittenName, reason: WakeReason): void => {
    const refusal = refuse(name.named, input) ?? (name.named.type === 'unknown' ? 'unknown' : mute);
    if (name.named.type === 'human') receipt.giveFloor();
    else if (refusal) receipt.ignore(name, refusal);
    else if (name.named.type === 'everyone') receipt.wakeAll(name, reason === 'address' ? 'all' : reason, sender);
    else receipt.wake(name, reason);
  };

  let addressed = false;
  let referenced = false;
  for (const name of to ?? []) {
    if (name.named.type === 'world') receipt.ignore(name, 'reference');
    else address(name, 'world_tag');
  }
  for (const mention of parsed.mentions) {
    const { kind, named } = mention;
    const isAddress = !to && (kind === 'address' || (kind === 'reference' && anywhere && named.type !== 'world'));
    if (isAddress) {
      address(mention, 'address');
      addressed ||= !isSelf(named, sender);
    } else if (kind === 'address' || kind === 'reference') {
      receipt.ignore(mention, named.type === 'unknown' ? 'unknown' : 'reference');
      referenced ||= named.type === 'agent';
    } else {
      receipt.ignore(mention, kind);
    }
  }
  if (!mute && !to && !addressed) {
    if (isAgent) autoReply(input, receipt);
    else if (!referenced) floorIsOpen(input, receipt);
  }
  return receipt.result(parsed.published, stop);
}

function isSelf(named: Named, sender: Sender): boolean {
  return named.type === 'agent' && sender.kind === 'agent' && named.agentId === sender.id;
}

/** The reasons that come before all others. */
function refuse(named: Named, input: RouteInput): 'self' | 'inactive' | 'broadcast_refused' | null {
  if (isSelf(named, input.sender)) return 'self';
  if (named.type === 'agent' && input.roster.byId.get(named.agentId)?.status !== 'active') return 'inactive';
  const refused = named.type === 'everyone' && input.sender.kind === 'agent' && !input.settings.agentBroadcasts;
  return refused ? 'broadcast_refused' : null;
}

/** A person or the world named nobody: the main agent, or everybody. */
function floorIsOpen({ roster, settings, sender }: RouteInput, receipt: Receipt): void {
  const main = settings.mainAgent;
  if (main === null) {
    receipt.wakeAll(null, 'broadcast', sender);
    return;
  }
  const byName = roster.byId.has(main) ? null : lookupName(main, roster);
  const agentId = byName?.type === 'agent' ? byName.agentId : main;
  receipt.wakeById(agentId, 'main_agent');
}

/** An agent named nobody but itself: whoever it answers goes on, unless that would be a chain of such answers. */
function autoReply({ roster, sender, replyTo, wokenBy }: RouteInput, receipt: Receipt): void {
  if (replyTo?.kind !== 'agent' || replyTo.id === sender.id || wokenBy === 'auto_reply') return;
  if (roster.byId.get(sender.id)?.autoReply !== true) return;
  receipt.wakeById(replyTo.id, 'auto_reply');
}
