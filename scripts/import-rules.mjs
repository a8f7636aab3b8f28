// What may import what, and which thing has one home only. `check-imports.mjs` applies it.

/** @typedef {{ layer: string, files: RegExp, may: RegExp[] }} Layer */

const PROTOCOL = /^core\/protocol\//;
const SAFETY = /^core\/safety\//;
const PORTS = /^core\/ports(\.ts|\/)/;
const CORE = /^core\//;

const adapter = (/** @type {string} */ name) => {
  const own = new RegExp(`^core/${name}/`);
  return { layer: `core/${name}`, files: own, may: [own, PROTOCOL, PORTS, SAFETY] };
};

/** The first that matches a file counts. @type {Layer[]} */
export const LAYERS = [
  { layer: 'core/protocol', files: PROTOCOL, may: [PROTOCOL] },
  { layer: 'core/world', files: /^core\/world\//, may: [/^core\/world\//, PROTOCOL, PORTS] },
  { layer: 'core/safety', files: SAFETY, may: [SAFETY, PROTOCOL] },
  ...['agents', 'tools', 'plugins', 'mcp', 'models', 'store', 'bus'].map(adapter),
  { layer: 'core/ports.ts', files: PORTS, may: [PROTOCOL, PORTS] },
  { layer: 'core/index.ts', files: /^core\/index\.ts$/, may: [CORE] },
  { layer: 'core', files: /^core\/[^/]+\.ts$/, may: [/^core\/(?:world\/)?[^/]+\.ts$/, PROTOCOL, SAFETY] },
  { layer: 'core', files: CORE, may: [CORE] },
  { layer: 'server/main.ts', files: /^server\/main\.ts$/, may: [/^(?:core|server)\//] },
  { layer: 'server', files: /^server\//, may: [/^server\//, CORE] },
  { layer: 'cli/main.ts', files: /^cli\/main\.ts$/, may: [/^(?:core|server|cli)\//] },
  { layer: 'cli', files: /^cli\//, may: [/^cli\//, CORE] },
  { layer: 'web', files: /^web\//, may: [/^web\//, PROTOCOL, /^core\/world\/mentions\.ts$/] },
  { layer: 'plugins', files: /^plugins\//, may: [/^plugins\//, PROTOCOL, /^core\/plugins\//] },
];

/** Code that ships. Tests may import and use what they like. */
export const PRODUCT = /^(?:core|server|cli|web|plugins)\//;
export const TEST = /\.test\.ts$|^tests\/|\/testing\//;

/** Things with named homes; elsewhere in the product they are a finding. */
export const HOMES = {
  env: [/^core\/config\.ts$/],
  childProcess: [/^cli\/open-browser\.ts$/],
  outbound: [/^core\/safety\/outbound\.ts$/],
  regexp: [/^core\/safety\/patterns\.ts$/],
};

/** The page talks to its own server with the browser's fetch. */
export const BROWSER_CODE = /^web\//;

/** What `core/world` gets from its ports instead. */
export const WORLD = /^core\/world\//;
export const AMBIENT = ['fetch', 'process', 'performance', 'crypto', 'setTimeout', 'setInterval', 'setImmediate'];

export const MAX_LINES = 500;
export const VAGUE_NAMES = ['util', 'utils', 'helper', 'helpers', 'manager', 'data', 'info', 'common', 'misc'];
