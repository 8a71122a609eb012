"""Adapters that store the history of an agent framework and show its model a compacted prompt.

Each module needs its framework, and works with a `Session` or `AsyncSession`:

- `pydantic_ai`: a capability for `pydantic_ai.Agent`
- `langchain`: a middleware for `langchain.agents.create_agent`
- `openai_agents`: a session for `agents.Runner`
- `litellm`: a callback for `litellm.acompletion`, its router and its proxy
"""
