/** One call of a provider: its outbound fetch, its abort, its errors, and the second try without what it refused. */
import type { ModelPart } from '../ports.ts';
import { type Exchange, type Outbound, openOutbound } from '../safety/outbound.ts';
import { complaintOf, failureOf, unfinished } from './provider-failure.ts';
import type { ProviderTarget } from './target.ts';

const MAX_RESPONSE_BYTES = 32 * 1024 * 1024;

/** What a provider has refused before, by model; lives as long as the process. */
export type Quirks<Q extends string> = Map<string, ReadonlySet<Q>>;

export interface CallPlan<Q extends string> {
  target: ProviderTarget;
  model: string;
  signal: AbortSignal;
  /** How much more patience the call needs than usual; a model that thinks sends nothing meanwhile. */
  patience: number;
  quirks: Quirks<Q>;
  /** What the words of a status 400 teach; null where nothing. */
  learn(complaint: string, known: ReadonlySet<Q>): Q | null;
  /** Streams the parts up to and with `finish`. */
  attempt(outbound: Outbound, signal: AbortSignal, quirks: ReadonlySet<Q>): AsyncIterable<ModelPart>;
}

const MAX_QUIRKS = 6;

/** Runs a plan. Throws ModelError, or the signal's reason when it aborts; the connection is closed either way. */
export async function* runCall<Q extends string>(plan: CallPlan<Q>): AsyncGenerator<ModelPart> {
  let known = plan.quirks.get(plan.model) ?? new Set<Q>();
  for (let tries = 0; ; tries += 1) {
    plan.signal.throwIfAborted();
    const outbound = open(plan);
    const learned = yield* once(plan, outbound, known, tries < MAX_QUIRKS);
    if (learned === null) break;
    known = new Set([...known, learned]);
  }
  // Remembered only now: what did not help would spoil later calls.
  if (known.size > 0) plan.quirks.set(plan.model, known);
}

function open<Q extends string>({ target, patience }: CallPlan<Q>): Outbound {
  return openOutbound({
    origin: new URL(target.baseUrl).origin,
    maxBytes: MAX_RESPONSE_BYTES,
    firstByteTimeoutMs: target.firstByteTimeoutMs * patience,
    idleTimeoutMs: target.idleTimeoutMs * patience,
    after: target.clock.after,
  });
}

async function* once<Q extends string>(
  plan: CallPlan<Q>,
  outbound: Outbound,
  known: ReadonlySet<Q>,
  mayLearn: boolean,
): AsyncGenerator<ModelPart, Q | null> {
  const call = new AbortController();
  const onAbort = (): void => call.abort(plan.signal.reason);
  plan.signal.addEventListener('abort', onAbort, { once: true });
  let finish: ModelPart | null = null;
  try {
    for await (const part of plan.attempt(outbound, call.signal, known)) {
      plan.signal.throwIfAborted();
      if (part.type === 'finish') finish = part;
      else yield part;
    }
  } catch (error) {
    plan.signal.throwIfAborted();
    const learned = mayLearn ? plan.learn(complaintOf(error, outbound.exchange), known) : null;
    if (learned !== null && !known.has(learned)) return learned;
    throw failureOf(error, outbound.exchange, plan.target);
  } finally {
    plan.signal.removeEventListener('abort', onAbort);
    call.abort();
  }
  plan.signal.throwIfAborted();
  if (finish === null) throw lost(outbound.exchange, plan.target);
  yield finish;
  return null;
}

/** SDKs end a stream quietly when its connection was aborted; the fault tells why. */
function lost(exchange: Readonly<Exchange>, target: ProviderTarget): Error {
  return exchange.fault ? failureOf(exchange.fault, exchange, target) : unfinished(exchange, target);
}
