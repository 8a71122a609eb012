"""Messages in spans of Vercel's AI SDK, converted to the dialect in which the SDK sends them."""
