import { getContext, setContext } from 'svelte';
import type { WorldAgent } from '../../../core/protocol/entities.ts';
import type { CompiledRoster } from '../../../core/world/mentions.ts';

/** What the parts of a message need to know of the room around them. */
export interface RoomContext {
  readonly worldId: string;
  readonly chatId: string;
  readonly agents: readonly WorldAgent[];
  readonly roster: CompiledRoster;
}

const KEY = Symbol('room');

export const provideRoom = (room: RoomContext): RoomContext => setContext(KEY, room);
export const useRoom = (): RoomContext => getContext<RoomContext>(KEY);
