import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: './core/store/postgres/schema.ts',
  out: './drizzle/postgres',
});
