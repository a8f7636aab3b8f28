CREATE TABLE `agent_revisions` (
	`world_id` text NOT NULL,
	`agent_id` text NOT NULL,
	`rev` integer NOT NULL,
	`body` text NOT NULL,
	PRIMARY KEY(`world_id`, `agent_id`, `rev`)
);
--> statement-breakpoint
CREATE TABLE `agents` (
	`world_id` text NOT NULL,
	`id` text NOT NULL,
	`fold` text NOT NULL,
	`position` integer NOT NULL,
	`rev` integer NOT NULL,
	`body` text NOT NULL,
	PRIMARY KEY(`world_id`, `id`)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `agents_fold` ON `agents` (`world_id`,`fold`);--> statement-breakpoint
CREATE TABLE `approvals` (
	`id` text PRIMARY KEY NOT NULL,
	`world_id` text NOT NULL,
	`chat_id` text NOT NULL,
	`turn_id` text NOT NULL,
	`step` text NOT NULL,
	`agent_id` text NOT NULL,
	`kind` text NOT NULL,
	`status` text NOT NULL,
	`args_hash` text,
	`slot` text,
	`body` text NOT NULL,
	`resolution` text,
	`created_at` integer NOT NULL,
	`expires_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `approvals_turn_step` ON `approvals` (`turn_id`,`step`);--> statement-breakpoint
CREATE UNIQUE INDEX `approvals_slot` ON `approvals` (`world_id`,`slot`) WHERE slot is not null;--> statement-breakpoint
CREATE INDEX `approvals_turn` ON `approvals` (`turn_id`);--> statement-breakpoint
CREATE INDEX `approvals_pending` ON `approvals` (`world_id`,`created_at`) WHERE status = 'pending';--> statement-breakpoint
CREATE TABLE `branches` (
	`chat_id` text NOT NULL,
	`id` integer NOT NULL,
	`parent` integer NOT NULL,
	`fork_seq` integer NOT NULL,
	`fork_message_id` text,
	`head_id` text,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`chat_id`, `id`)
);
--> statement-breakpoint
CREATE TABLE `chats` (
	`id` text PRIMARY KEY NOT NULL,
	`world_id` text NOT NULL,
	`shard` integer DEFAULT 0 NOT NULL,
	`title` text NOT NULL,
	`head` text,
	`parent_chat_id` text,
	`paused` integer DEFAULT 0 NOT NULL,
	`next_seq` integer DEFAULT 1 NOT NULL,
	`human_seq` integer DEFAULT 0 NOT NULL,
	`ledger` text NOT NULL,
	`branch` integer DEFAULT 0 NOT NULL,
	`spent_tokens` integer DEFAULT 0 NOT NULL,
	`spent_usd` real DEFAULT 0 NOT NULL,
	`granted_tokens` integer DEFAULT 0 NOT NULL,
	`granted_usd` real DEFAULT 0 NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `chats_world` ON `chats` (`world_id`,`created_at`);--> statement-breakpoint
CREATE TABLE `events` (
	`world_id` text NOT NULL,
	`seq` integer NOT NULL,
	`type` text NOT NULL,
	`chat_id` text,
	`at` integer NOT NULL,
	`data` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `events_world_seq` ON `events` (`world_id`,`seq`);--> statement-breakpoint
CREATE TABLE `grants` (
	`id` text PRIMARY KEY NOT NULL,
	`world_id` text NOT NULL,
	`chat_id` text,
	`agent_id` text,
	`tool` text NOT NULL,
	`body` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `grants_world` ON `grants` (`world_id`,`tool`);--> statement-breakpoint
CREATE TABLE `idempotency_keys` (
	`scope` text NOT NULL,
	`key` text NOT NULL,
	`hash` text NOT NULL,
	`answer` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`scope`, `key`)
);
--> statement-breakpoint
CREATE TABLE `messages` (
	`chat_id` text NOT NULL,
	`seq` integer NOT NULL,
	`id` text NOT NULL,
	`key` text,
	`parent_id` text,
	`branch` integer DEFAULT 0 NOT NULL,
	`world_id` text NOT NULL,
	`sender_kind` text NOT NULL,
	`body` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `messages_chat_seq` ON `messages` (`chat_id`,`seq`);--> statement-breakpoint
CREATE UNIQUE INDEX `messages_id` ON `messages` (`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `messages_key` ON `messages` (`chat_id`,`key`) WHERE key is not null;--> statement-breakpoint
CREATE TABLE `meta` (
	`key` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `run_queue` (
	`chat_id` text PRIMARY KEY NOT NULL,
	`world_id` text NOT NULL,
	`ready_at` integer NOT NULL,
	`owner` text,
	`fence` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `run_queue_free` ON `run_queue` (`ready_at`) WHERE owner is null;--> statement-breakpoint
CREATE TABLE `runs` (
	`id` text PRIMARY KEY NOT NULL,
	`world_id` text NOT NULL,
	`chat_id` text NOT NULL,
	`state` text NOT NULL,
	`body` text NOT NULL,
	`created_at` integer NOT NULL,
	`ended_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `runs_active` ON `runs` (`chat_id`) WHERE ended_at is null;--> statement-breakpoint
CREATE TABLE `tasks` (
	`id` text PRIMARY KEY NOT NULL,
	`world_id` text NOT NULL,
	`chat_id` text NOT NULL,
	`parent_chat_id` text,
	`status` text NOT NULL,
	`body` text NOT NULL,
	`created_at` integer NOT NULL,
	`ended_at` integer
);
--> statement-breakpoint
CREATE INDEX `tasks_world` ON `tasks` (`world_id`,`created_at`);--> statement-breakpoint
CREATE TABLE `tokens` (
	`id` text PRIMARY KEY NOT NULL,
	`hash` text NOT NULL,
	`role` text NOT NULL,
	`label` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `tokens_hash_unique` ON `tokens` (`hash`);--> statement-breakpoint
CREATE TABLE `turn_steps` (
	`turn_id` text NOT NULL,
	`step` text NOT NULL,
	`status` text NOT NULL,
	`result` text,
	PRIMARY KEY(`turn_id`, `step`)
);
--> statement-breakpoint
CREATE TABLE `turns` (
	`id` text PRIMARY KEY NOT NULL,
	`world_id` text NOT NULL,
	`chat_id` text NOT NULL,
	`agent_id` text NOT NULL,
	`agent_rev` integer,
	`trigger_id` text NOT NULL,
	`trigger_seq` integer NOT NULL,
	`n` integer DEFAULT 0 NOT NULL,
	`reason` text NOT NULL,
	`from_id` text NOT NULL,
	`hop` integer NOT NULL,
	`ordinal` integer NOT NULL,
	`state` text NOT NULL,
	`attempt` integer DEFAULT 0 NOT NULL,
	`crashes` integer DEFAULT 0 NOT NULL,
	`not_before` integer DEFAULT 0 NOT NULL,
	`error` text,
	`input_tokens` integer DEFAULT 0 NOT NULL,
	`output_tokens` integer DEFAULT 0 NOT NULL,
	`cached_tokens` integer DEFAULT 0 NOT NULL,
	`reasoning_tokens` integer DEFAULT 0 NOT NULL,
	`usd` real DEFAULT 0 NOT NULL,
	`calls` integer DEFAULT 0 NOT NULL,
	`queued_at` integer NOT NULL,
	`started_at` integer,
	`ended_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `turns_key` ON `turns` (`chat_id`,`agent_id`,`trigger_seq`,`n`);--> statement-breakpoint
CREATE INDEX `turns_open` ON `turns` (`chat_id`,`state`,`trigger_seq`) WHERE state in ('queued', 'running', 'waiting');--> statement-breakpoint
CREATE INDEX `turns_open_agent` ON `turns` (`chat_id`,`agent_id`,`trigger_seq`,`n`) WHERE state in ('queued', 'running', 'waiting');--> statement-breakpoint
CREATE INDEX `turns_chat` ON `turns` (`chat_id`,`queued_at`);--> statement-breakpoint
CREATE INDEX `turns_world` ON `turns` (`world_id`);--> statement-breakpoint
CREATE TABLE `workers` (
	`id` text PRIMARY KEY NOT NULL,
	`lease_until` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `worlds` (
	`id` text PRIMARY KEY NOT NULL,
	`shard` integer DEFAULT 0 NOT NULL,
	`settings` text NOT NULL,
	`rules` text DEFAULT '[]' NOT NULL,
	`spent_tokens` integer DEFAULT 0 NOT NULL,
	`spent_usd` real DEFAULT 0 NOT NULL,
	`granted_tokens` integer DEFAULT 0 NOT NULL,
	`granted_usd` real DEFAULT 0 NOT NULL,
	`next_seq` integer DEFAULT 1 NOT NULL,
	`roster_rev` integer DEFAULT 1 NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
