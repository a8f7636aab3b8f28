import { isStored, type WorldEvent } from '../core/protocol/events.ts';

/** One unmasked, final text frame as a server sends it (RFC 6455, 5.2). */
export function textFrame(text: string): Buffer {
  const size = Buffer.byteLength(text);
  const header = size < 126 ? 2 : size < 65_536 ? 4 : 10;
  const frame = Buffer.allocUnsafe(header + size);
  frame[0] = 0x81;
  if (header === 2) {
    frame[1] = size;
  } else if (header === 4) {
    frame[1] = 126;
    frame.writeUInt16BE(size, 2);
  } else {
    frame[1] = 127;
    frame.writeBigUInt64BE(BigInt(size), 2);
  }
  frame.write(text, header);
  return frame;
}

/** An event with its wire forms, each made once for all who listen. */
export class EncodedEvent {
  readonly event: WorldEvent;
  /** Counts what a channel has dispatched, so that a late joiner can tell what it has seen already. */
  readonly ticket: number;
  #json: string | undefined;
  #frame: Buffer | undefined;
  #sse: Buffer | undefined;

  constructor(event: WorldEvent, ticket: number) {
    this.event = event;
    this.ticket = ticket;
  }

  get json(): string {
    this.#json ??= JSON.stringify(this.event);
    return this.#json;
  }

  /** A WebSocket frame. */
  get frame(): Buffer {
    this.#frame ??= textFrame(this.json);
    return this.#frame;
  }

  /** A server-sent event; JSON has no line breaks. Only stored events have an id to resume from. */
  get sse(): Buffer {
    this.#sse ??= Buffer.from(`${isStored(this.event) ? `id: ${this.event.seq}\n` : ''}data: ${this.json}\n\n`);
    return this.#sse;
  }
}
