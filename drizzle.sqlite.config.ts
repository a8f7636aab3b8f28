import { defineConfig } from 'drizzle-kit';

export default defineConfig({ dialect: 'sqlite', schema: './core/store/sqlite/schema.ts', out: './drizzle/sqlite' });
