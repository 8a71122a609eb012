"""Provider rules shared by several dialects: every tool call has its result, in the right place.

Rules of one provider are in the package of its dialect. Rules A1 to A12 are Anthropic's, C1 to C5 belong to
OpenAI's Chat Completions, R1 to R6 to its Responses API, and G1 to G4 are Gemini's.
"""
