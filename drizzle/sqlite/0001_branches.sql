ALTER TABLE `chats` ADD `rev` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `events` ADD `message_id` text;--> statement-breakpoint
UPDATE `events` SET `message_id` = json_extract(`data`, '$.message.id') WHERE `type` IN ('message.created', 'message.updated');--> statement-breakpoint
CREATE INDEX `events_message` ON `events` (`message_id`) WHERE message_id is not null;--> statement-breakpoint
CREATE INDEX `messages_branch` ON `messages` (`chat_id`,`branch`,`seq`);