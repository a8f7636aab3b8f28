import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { generateSpecs } from 'hono-openapi';
import { z } from 'zod';
import * as entities from '../core/protocol/entities.ts';
import { AppError, ErrorBody } from '../core/protocol/errors.ts';
import { LiveEvent, StoredEvent } from '../core/protocol/events.ts';
import { AnsweredApproval, MessagePage, Posted, WorldDetail, WorldUsage } from '../core/protocol/requests.ts';
import type { ServerApp } from './endpoint.ts';
import { DOCS_POLICY } from './headers.ts';

const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Parley API</title>
    <link rel="stylesheet" href="/docs/swagger-ui.css">
  </head>
  <body>
    <div id="api"></div>
    <script src="/docs/swagger-ui-bundle.js"></script>
    <script src="/docs/start.js"></script>
  </body>
</html>
`;

const START = `window.SwaggerUIBundle({
  url: '/api/v1/openapi.json',
  dom_id: '#api',
  deepLinking: true,
  persistAuthorization: false,
  validatorUrl: null,
});
`;

const SCRIPT = 'text/javascript; charset=utf-8';
const FILES = new Map([
  ['swagger-ui.css', 'text/css; charset=utf-8'],
  ['swagger-ui-bundle.js', SCRIPT],
]);

/** Shapes that the document names once and refers to. */
function nameSchemas(): void {
  const { World, WorldAgent, Chat, Message, Turn, Usage, Routing, Token, ProviderStatus } = entities;
  const shared = { World, WorldAgent, Chat, Message, Turn, Usage, Routing, Token, ProviderStatus };
  const { Approval, Grant, Rule } = entities;
  const decisions = { Approval, Grant, Rule, AnsweredApproval };
  const rest = { ErrorBody, StoredEvent, LiveEvent, MessagePage, Posted, WorldDetail, WorldUsage };
  for (const [id, schema] of Object.entries({ ...shared, ...decisions, ...rest })) {
    if (!z.globalRegistry.has(schema)) z.globalRegistry.add(schema, { id });
  }
}

/** The API document, made from the schemas that parse the calls, and a page to read it. */
export function docsRoutes(app: ServerApp, version: string): void {
  let document: ReturnType<typeof generateSpecs> | undefined;
  app.get('/api/v1/openapi.json', async (c) => {
    nameSchemas();
    document ??= generateSpecs(app, {
      documentation: {
        info: { title: 'Parley', version, description: 'Worlds where people and agents talk.' },
        components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
        security: [{ token: [] }],
      },
    });
    return c.json(await document);
  });
  app.get('/docs', (c) => {
    c.header('Content-Security-Policy', DOCS_POLICY);
    return c.html(PAGE);
  });
  app.get('/docs/start.js', (c) => c.body(START, 200, { 'Content-Type': SCRIPT }));
  app.get('/docs/:file', async (c) => {
    const name = c.req.param('file');
    const type = FILES.get(name);
    if (type === undefined) throw new AppError('not_found', 'There is no such file');
    // The package is resolved when asked for: a server that nobody reads the document of does not need it.
    const home = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
    return c.body(await readFile(join(home, name)), 200, { 'Content-Type': type, 'Cache-Control': 'no-cache' });
  });
}
