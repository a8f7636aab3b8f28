import { getTableName, is, Table } from 'drizzle-orm';
import { type PgTable, getTableConfig as postgresConfig } from 'drizzle-orm/pg-core';
import { type SQLiteTable, getTableConfig as sqliteConfig } from 'drizzle-orm/sqlite-core';
import { expect, expectTypeOf, test } from 'vitest';
import * as postgres from './postgres/schema.ts';
import * as sqlite from './sqlite/schema.ts';

type Rows<T> = { [K in keyof T]: T[K] extends Table ? T[K]['$inferSelect'] : never };

test('both dialects have the same tables with the same row types', () => {
  expectTypeOf<Rows<typeof sqlite>>().toEqualTypeOf<Rows<typeof postgres>>();
  expect(Object.keys(sqlite).sort()).toEqual(Object.keys(postgres).sort());
});

test('both dialects have the same columns, keys and indexes', () => {
  for (const [name, table] of Object.entries(sqlite)) {
    const other = (postgres as Record<string, unknown>)[name];
    if (!is(other, Table)) throw new Error(`${name} is missing in PostgreSQL`);
    const left = sqliteConfig(table as SQLiteTable);
    const right = postgresConfig(other as PgTable);
    const columns = (config: { columns: readonly { name: string; notNull: boolean; primary: boolean }[] }) =>
      config.columns.map((column) => [column.name, column.notNull, column.primary]);
    expect(columns(left), getTableName(table)).toEqual(columns(right));
    const indexes = (config: { indexes: readonly { config: { name?: string | undefined; unique?: boolean } }[] }) =>
      config.indexes.map((entry) => [entry.config.name, entry.config.unique]);
    expect(indexes(left)).toEqual(indexes(right));
    expect(left.primaryKeys.length).toBe(right.primaryKeys.length);
  }
});
