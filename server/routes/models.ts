import { z } from 'zod';
import type { Parley } from '../../core/parley.ts';
import { ProviderStatus } from '../../core/protocol/entities.ts';
import { AppError } from '../../core/protocol/errors.ts';
import { ProviderTest, PutProvider, TestProvider } from '../../core/protocol/requests.ts';
import { endpoint, type ServerApp } from '../endpoint.ts';

const tag = 'Models';

/** A provider that nobody has is a wrong address here; only a turn or a test call fails on the provider's side. */
async function known<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'provider_unknown') throw error;
    throw new AppError('not_found', error.message, error.details, { cause: error });
  }
}

export function modelRoutes(app: ServerApp, parley: Parley): void {
  endpoint(app, {
    method: 'get',
    path: '/api/v1/models',
    summary: 'List the providers, whether each is configured, and models known to work',
    tag,
    answer: { status: 200, schema: z.strictObject({ providers: z.array(ProviderStatus) }) },
    run: async ({ actor }) => ({ providers: await parley.listProviders(actor) }),
  });
  endpoint(app, {
    method: 'put',
    path: '/api/v1/models/:provider',
    summary: 'Set a provider’s key and address; the key is stored and never shown',
    tag,
    body: PutProvider,
    answer: { status: 200, schema: ProviderStatus },
    run: ({ actor, ids, body }) => known(parley.setProvider(actor, ids.provider, body)),
  });
  endpoint(app, {
    method: 'post',
    path: '/api/v1/models/:provider/test',
    summary: 'Ask a provider’s model for a word',
    tag,
    body: TestProvider,
    answer: { status: 200, schema: ProviderTest },
    errors: ['missing_api_key', 'provider_auth', 'provider_unreachable'],
    run: ({ actor, ids, body, signal }) => known(parley.testProvider(actor, ids.provider, body.model, signal)),
  });
}
