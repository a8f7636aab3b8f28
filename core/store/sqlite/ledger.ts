import type { ChatLedger } from '../../ports.ts';

/** A chat's limits before anything has been counted. */
export const emptyLedger = (): ChatLedger => ({ total: 0, granted: {}, told: [], held: [], resting: {} });
