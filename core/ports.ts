/**
 * The only way out of `core/world`: what the world needs from stores, models, the bus and the machine.
 * Every store method is one whole transaction; shared code never holds one open.
 */

export * from './ports/branches.ts';
export * from './ports/changing.ts';
export * from './ports/machine.ts';
export * from './ports/models.ts';
export * from './ports/reading.ts';
export * from './ports/store.ts';
export * from './ports/tools.ts';
export * from './ports/turns.ts';
