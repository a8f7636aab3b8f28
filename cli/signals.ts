/** Calls back with the count of interruptions so far; the returned function ends that. */
export function onInterrupt(handler: (count: number, signal: NodeJS.Signals) => void): () => void {
  let count = 0;
  const listener = (signal: NodeJS.Signals) => {
    count += 1;
    handler(count, signal);
  };
  // Not SIGHUP: a listener would undo `nohup`, which has it ignored.
  const signals: NodeJS.Signals[] = ['SIGINT', 'SIGTERM'];
  for (const signal of signals) process.on(signal, listener);
  return () => {
    for (const signal of signals) process.off(signal, listener);
  };
}
