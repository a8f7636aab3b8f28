CREATE TABLE "agent_revisions" (
	"world_id" text NOT NULL,
	"agent_id" text NOT NULL,
	"rev" bigint NOT NULL,
	"body" text NOT NULL,
	CONSTRAINT "agent_revisions_world_id_agent_id_rev_pk" PRIMARY KEY("world_id","agent_id","rev")
);
--> statement-breakpoint
CREATE TABLE "agents" (
	"world_id" text NOT NULL,
	"id" text NOT NULL,
	"fold" text NOT NULL,
	"position" integer NOT NULL,
	"rev" bigint NOT NULL,
	"body" text NOT NULL,
	CONSTRAINT "agents_world_id_id_pk" PRIMARY KEY("world_id","id")
);
--> statement-breakpoint
CREATE TABLE "approvals" (
	"id" text PRIMARY KEY NOT NULL,
	"world_id" text NOT NULL,
	"chat_id" text NOT NULL,
	"turn_id" text NOT NULL,
	"step" text NOT NULL,
	"agent_id" text NOT NULL,
	"kind" text NOT NULL,
	"status" text NOT NULL,
	"args_hash" text,
	"slot" text,
	"body" text NOT NULL,
	"resolution" text,
	"created_at" bigint NOT NULL,
	"expires_at" bigint
);
--> statement-breakpoint
CREATE TABLE "branches" (
	"chat_id" text NOT NULL,
	"id" integer NOT NULL,
	"parent" integer NOT NULL,
	"fork_seq" bigint NOT NULL,
	"fork_message_id" text,
	"head_id" text,
	"created_at" bigint NOT NULL,
	CONSTRAINT "branches_chat_id_id_pk" PRIMARY KEY("chat_id","id")
);
--> statement-breakpoint
CREATE TABLE "chats" (
	"id" text PRIMARY KEY NOT NULL,
	"world_id" text NOT NULL,
	"shard" integer DEFAULT 0 NOT NULL,
	"title" text NOT NULL,
	"head" text,
	"parent_chat_id" text,
	"paused" integer DEFAULT 0 NOT NULL,
	"next_seq" bigint DEFAULT 1 NOT NULL,
	"human_seq" bigint DEFAULT 0 NOT NULL,
	"ledger" text NOT NULL,
	"branch" integer DEFAULT 0 NOT NULL,
	"spent_tokens" bigint DEFAULT 0 NOT NULL,
	"spent_usd" double precision DEFAULT 0 NOT NULL,
	"granted_tokens" bigint DEFAULT 0 NOT NULL,
	"granted_usd" double precision DEFAULT 0 NOT NULL,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "events" (
	"world_id" text NOT NULL,
	"seq" bigint NOT NULL,
	"type" text NOT NULL,
	"chat_id" text,
	"at" bigint NOT NULL,
	"data" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "grants" (
	"id" text PRIMARY KEY NOT NULL,
	"world_id" text NOT NULL,
	"chat_id" text,
	"agent_id" text,
	"tool" text NOT NULL,
	"body" text NOT NULL,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "idempotency_keys" (
	"scope" text NOT NULL,
	"key" text NOT NULL,
	"hash" text NOT NULL,
	"answer" text NOT NULL,
	"created_at" bigint NOT NULL,
	CONSTRAINT "idempotency_keys_scope_key_pk" PRIMARY KEY("scope","key")
);
--> statement-breakpoint
CREATE TABLE "messages" (
	"chat_id" text NOT NULL,
	"seq" bigint NOT NULL,
	"id" text NOT NULL,
	"key" text,
	"parent_id" text,
	"branch" integer DEFAULT 0 NOT NULL,
	"world_id" text NOT NULL,
	"sender_kind" text NOT NULL,
	"body" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "meta" (
	"key" text PRIMARY KEY NOT NULL,
	"value" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "run_queue" (
	"chat_id" text PRIMARY KEY NOT NULL,
	"world_id" text NOT NULL,
	"ready_at" bigint NOT NULL,
	"owner" text,
	"fence" bigint DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "runs" (
	"id" text PRIMARY KEY NOT NULL,
	"world_id" text NOT NULL,
	"chat_id" text NOT NULL,
	"state" text NOT NULL,
	"body" text NOT NULL,
	"created_at" bigint NOT NULL,
	"ended_at" bigint
);
--> statement-breakpoint
CREATE TABLE "tasks" (
	"id" text PRIMARY KEY NOT NULL,
	"world_id" text NOT NULL,
	"chat_id" text NOT NULL,
	"parent_chat_id" text,
	"status" text NOT NULL,
	"body" text NOT NULL,
	"created_at" bigint NOT NULL,
	"ended_at" bigint
);
--> statement-breakpoint
CREATE TABLE "tokens" (
	"id" text PRIMARY KEY NOT NULL,
	"hash" text NOT NULL,
	"role" text NOT NULL,
	"label" text NOT NULL,
	"created_at" bigint NOT NULL,
	CONSTRAINT "tokens_hash_unique" UNIQUE("hash")
);
--> statement-breakpoint
CREATE TABLE "turn_steps" (
	"turn_id" text NOT NULL,
	"step" text NOT NULL,
	"status" text NOT NULL,
	"result" text,
	CONSTRAINT "turn_steps_turn_id_step_pk" PRIMARY KEY("turn_id","step")
);
--> statement-breakpoint
CREATE TABLE "turns" (
	"id" text PRIMARY KEY NOT NULL,
	"world_id" text NOT NULL,
	"chat_id" text NOT NULL,
	"agent_id" text NOT NULL,
	"agent_rev" bigint,
	"trigger_id" text NOT NULL,
	"trigger_seq" bigint NOT NULL,
	"n" integer DEFAULT 0 NOT NULL,
	"reason" text NOT NULL,
	"from_id" text NOT NULL,
	"hop" integer NOT NULL,
	"ordinal" integer NOT NULL,
	"state" text NOT NULL,
	"attempt" integer DEFAULT 0 NOT NULL,
	"crashes" integer DEFAULT 0 NOT NULL,
	"not_before" bigint DEFAULT 0 NOT NULL,
	"error" text,
	"input_tokens" bigint DEFAULT 0 NOT NULL,
	"output_tokens" bigint DEFAULT 0 NOT NULL,
	"cached_tokens" bigint DEFAULT 0 NOT NULL,
	"reasoning_tokens" bigint DEFAULT 0 NOT NULL,
	"usd" double precision DEFAULT 0 NOT NULL,
	"calls" integer DEFAULT 0 NOT NULL,
	"queued_at" bigint NOT NULL,
	"started_at" bigint,
	"ended_at" bigint
);
--> statement-breakpoint
CREATE TABLE "workers" (
	"id" text PRIMARY KEY NOT NULL,
	"lease_until" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "worlds" (
	"id" text PRIMARY KEY NOT NULL,
	"shard" integer DEFAULT 0 NOT NULL,
	"settings" text NOT NULL,
	"rules" text DEFAULT '[]' NOT NULL,
	"spent_tokens" bigint DEFAULT 0 NOT NULL,
	"spent_usd" double precision DEFAULT 0 NOT NULL,
	"granted_tokens" bigint DEFAULT 0 NOT NULL,
	"granted_usd" double precision DEFAULT 0 NOT NULL,
	"next_seq" bigint DEFAULT 1 NOT NULL,
	"roster_rev" bigint DEFAULT 1 NOT NULL,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX "agents_fold" ON "agents" USING btree ("world_id","fold");--> statement-breakpoint
CREATE UNIQUE INDEX "approvals_turn_step" ON "approvals" USING btree ("turn_id","step");--> statement-breakpoint
CREATE UNIQUE INDEX "approvals_slot" ON "approvals" USING btree ("world_id","slot") WHERE slot is not null;--> statement-breakpoint
CREATE INDEX "approvals_turn" ON "approvals" USING btree ("turn_id");--> statement-breakpoint
CREATE INDEX "approvals_pending" ON "approvals" USING btree ("world_id","created_at") WHERE status = 'pending';--> statement-breakpoint
CREATE INDEX "chats_world" ON "chats" USING btree ("world_id","created_at");--> statement-breakpoint
CREATE UNIQUE INDEX "events_world_seq" ON "events" USING btree ("world_id","seq");--> statement-breakpoint
CREATE INDEX "grants_world" ON "grants" USING btree ("world_id","tool");--> statement-breakpoint
CREATE UNIQUE INDEX "messages_chat_seq" ON "messages" USING btree ("chat_id","seq");--> statement-breakpoint
CREATE UNIQUE INDEX "messages_id" ON "messages" USING btree ("id");--> statement-breakpoint
CREATE UNIQUE INDEX "messages_key" ON "messages" USING btree ("chat_id","key") WHERE key is not null;--> statement-breakpoint
CREATE INDEX "run_queue_free" ON "run_queue" USING btree ("ready_at") WHERE owner is null;--> statement-breakpoint
CREATE UNIQUE INDEX "runs_active" ON "runs" USING btree ("chat_id") WHERE ended_at is null;--> statement-breakpoint
CREATE INDEX "tasks_world" ON "tasks" USING btree ("world_id","created_at");--> statement-breakpoint
CREATE UNIQUE INDEX "turns_key" ON "turns" USING btree ("chat_id","agent_id","trigger_seq","n");--> statement-breakpoint
CREATE INDEX "turns_open" ON "turns" USING btree ("chat_id","state","trigger_seq") WHERE state in ('queued', 'running', 'waiting');--> statement-breakpoint
CREATE INDEX "turns_open_agent" ON "turns" USING btree ("chat_id","agent_id","trigger_seq","n") WHERE state in ('queued', 'running', 'waiting');--> statement-breakpoint
CREATE INDEX "turns_chat" ON "turns" USING btree ("chat_id","queued_at");--> statement-breakpoint
CREATE INDEX "turns_world" ON "turns" USING btree ("world_id");