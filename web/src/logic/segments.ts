import { type CompiledRoster, type Mention, parseMentions } from '../../../core/world/mentions.ts';

/** A piece of what is typed, with what the router would make of it. */
export interface Segment {
  readonly text: string;
  readonly kind: 'text' | 'address' | 'reference' | 'unknown' | 'inactive';
  readonly agentId: string | null;
  /** The people in the room are meant. */
  readonly isHuman: boolean;
}

/** Beyond this the highlighting is left out: typing must stay quick. */
const MAX_HIGHLIGHTED = 50_000;

/** Cuts a draft at its mentions. `wakesAnywhere`: a person's mentions in mid-text are addresses too. */
export function segmentsOf(text: string, roster: CompiledRoster, wakesAnywhere: boolean): readonly Segment[] {
  if (text === '' || text.length > MAX_HIGHLIGHTED) return [plain(text)];
  const segments: Segment[] = [];
  let end = 0;
  for (const mention of parseMentions(text, roster).mentions) {
    const kind = kindOf(mention, roster, wakesAnywhere);
    if (kind === 'text' || mention.start < end) continue;
    if (mention.start > end) segments.push(plain(text.slice(end, mention.start)));
    const agentId = mention.named.type === 'agent' ? mention.named.agentId : null;
    segments.push({
      text: text.slice(mention.start, mention.end),
      kind,
      agentId,
      isHuman: mention.named.type === 'human',
    });
    end = mention.end;
  }
  if (end < text.length) segments.push(plain(text.slice(end)));
  return segments;
}

const plain = (text: string): Segment => ({ text, kind: 'text', agentId: null, isHuman: false });

function kindOf({ kind, named }: Mention, roster: CompiledRoster, wakesAnywhere: boolean): Segment['kind'] {
  if (kind === 'code' || kind === 'quote') return 'text';
  const isAddress = kind === 'address' || wakesAnywhere;
  if (named.type === 'unknown') return kind === 'address' || wakesAnywhere ? 'unknown' : 'text';
  if (named.type === 'world') return 'text';
  if (named.type === 'agent' && roster.byId.get(named.agentId)?.status !== 'active') return 'inactive';
  return isAddress ? 'address' : 'reference';
}
