import { EventEmitter } from 'eventemitter3';
import type { Bus } from '../ports.ts';
import type { WorldEvent } from '../protocol/events.ts';

/** The live bus of one process. */
export function memoryBus(): Bus {
  const emitter = new EventEmitter();
  return {
    publish(event) {
      emitter.emit(event.world, event);
    },
    subscribe(world, handler: (event: WorldEvent) => void) {
      emitter.on(world, handler);
      return () => {
        emitter.off(world, handler);
      };
    },
  };
}
