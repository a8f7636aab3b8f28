ALTER TABLE "chats" ADD COLUMN "rev" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "events" ADD COLUMN "message_id" text;--> statement-breakpoint
UPDATE "events" SET "message_id" = "data"::json #>> '{message,id}' WHERE "type" IN ('message.created', 'message.updated');--> statement-breakpoint
CREATE INDEX "events_message" ON "events" USING btree ("message_id") WHERE message_id is not null;--> statement-breakpoint
CREATE INDEX "messages_branch" ON "messages" USING btree ("chat_id","branch","seq");