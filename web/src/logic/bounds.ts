/** The server takes 256 KB of UTF-8; a text of so many characters may still be refused by it, with its reason. */
export const MAX_MESSAGE_CHARACTERS = 262_144;
