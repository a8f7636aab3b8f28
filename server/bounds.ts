/** What one client may ask of the server; over a bound it gets a typed error and the server lives. */
export const BOUNDS = {
  /** Bytes of a request body. */
  bodyBytes: 1024 * 1024,
  /** Bytes of one frame from a client. */
  frameBytes: 1024 * 1024,
  /** Sustained frames per second of one socket, and how many may come at once. */
  framesPerSecond: 50,
  frameBurst: 200,
  /** Frames of one socket that wait for their turn; beyond it no more are read. */
  pendingFrames: 16,
  subscriptionsPerSocket: 64,
  /** WebSockets and event streams together. */
  connections: 20_000,
  /** Unsent bytes above which a client loses live deltas and reads stored events from the log at its own pace. */
  softBufferBytes: 256 * 1024,
  /** Unsent bytes above which a client is cut off. */
  hardBufferBytes: 4 * 1024 * 1024,
  /** How long a client may take to read below the soft bound before it is cut off. */
  stallMs: 20_000,
  /** A comment in every event stream; a ping to every socket at each second one. */
  heartbeatMs: 15_000,
  /** Events of one read of the log. */
  pageEvents: 256,
  /** Newest events that a world with listeners keeps ready, by number and by bytes. */
  windowEvents: 256,
  windowBytes: 256 * 1024,
  /** Clients that are written to before other work gets a chance. */
  sliceClients: 256,
  /** Events of one world that wait to be written; beyond it clients read the log. */
  queuedEvents: 1024,
  /** Longest and usual `timeoutMs` of `?wait=idle`. */
  waitMs: 600_000,
  defaultWaitMs: 60_000,
  /** Messages that one `?wait=idle` answers with. */
  waitMessages: 2_000,
  /** Wrong tokens at `POST /api/v1/session` per address and minute. */
  sessionFailures: 10,
  /** How long open requests may go on when the server closes. */
  closeGraceMs: 2_500,
} as const;

export type Bounds = { readonly [K in keyof typeof BOUNDS]: number };
